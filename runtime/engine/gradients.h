// The end of a step: makes the step's gradients final, and only then adds them to the gradients of earlier steps.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/schedule/schedule.h"
#include "runtime/split/pipe.h"
#include "runtime/transport/transport.h"

namespace plumbline::engine {

/// Moves the .grad of every parameter in `states` aside, so that a step begins without gradients. Unless add_back() was
/// called, the destructor restores the earlier .grad and drops the step's.
class GradientStash {
 public:
  explicit GradientStash(const std::map<int, split::StageState>& states);
  ~GradientStash();
  GradientStash(const GradientStash&) = delete;
  GradientStash& operator=(const GradientStash&) = delete;

  /// Adds the step's .grad to the earlier gradients (in place if no other tensor shares their memory) and makes the sum
  /// the parameter's .grad. Call once, after the step's gradients are final.
  void add_back();

 private:
  struct Entry {
    at::Tensor parameter, before;
  };
  std::vector<Entry> entries_;
};

/// Copies every parameter gradient that shares memory with another tensor; call after a B or a W, because the next
/// backward adds to .grad in place. If autograd reaches several leaves through views, their gradients may share one
/// memory (github.com/pytorch/pytorch/issues/34082): with another parameter's gradient, with an input's gradient that
/// is being sent, or with a gradient that a first half keeps for its second half.
void separate_gradients(const split::StageState& state);

/// A parameter with several copies: several stages use the parameter, or its stage is in several replicas.
struct ParameterCopies {
  std::string name;
  /// One copy: the stage that uses it, and the rank that holds it.
  struct Copy {
    int stage, rank;
  };
  /// Ascending by stage, then by replica. A rank that holds a stage in several replicas has one copy, listed at the
  /// first of these replicas.
  std::vector<Copy> copies;
};

/// Returns the parameters in `states` (this rank's stages) that have several copies, in an order that is the same on
/// all ranks.
std::vector<ParameterCopies> parameter_copies(const std::map<int, split::StageState>& states,
                                              const std::vector<split::SharedParameter>& shared,
                                              const schedule::Schedule& schedule);

/// The number of tags that sum_copies() uses.
inline constexpr int64_t kCopyTags = 4;

/// Sums the gradients of each parameter's copies in ascending order of (stage, replica), and sets every copy's .grad to
/// the sum. A copy without a gradient contributes nothing; if no copy has a gradient, all stay without. Every rank
/// calls this function with its own `parameters` (from parameter_copies()) and the same `first_tag`. Throws as
/// Transport::wait() does.
void sum_copies(const std::map<int, split::StageState>& states, const std::vector<ParameterCopies>& parameters,
                transport::Transport& transport, int64_t first_tag, const transport::Deadline& deadline);

/// Divides the .grad of every parameter by `divisor`, in place.
void divide_gradients(const std::map<int, split::StageState>& states, double divisor);

}  // namespace plumbline::engine
