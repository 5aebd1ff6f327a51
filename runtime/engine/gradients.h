// The end of a step: finishes this step's gradients, and only then adds them to the earlier ones.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/schedule/schedule.h"
#include "runtime/split/pipe.h"
#include "runtime/transport/transport.h"

namespace plumbline::engine {

/// Moves the .grad of every parameter aside during a step, so that the step begins without any. A failed step leaves
/// the gradients as they were before it.
class GradientStash {
 public:
  explicit GradientStash(const std::map<int, split::StageState>& states);
  ~GradientStash();
  GradientStash(const GradientStash&) = delete;
  GradientStash& operator=(const GradientStash&) = delete;

  /// Adds the step's .grad to the gradients moved aside. Call it once, after the step's gradients are final.
  void add_back();

 private:
  struct Entry {
    at::Tensor parameter, before;
  };
  std::vector<Entry> entries_;
};

/// After a backward, or its second half: gives every parameter's gradient its own memory, because the next backward
/// adds to it in place. Autograd lets several leaves share one memory when it reaches them through views
/// (github.com/pytorch/pytorch/issues/34082): other parameters, inputs whose gradients are being sent to other stages,
/// and gradients that a first half keeps for its second.
void separate_gradients(const split::StageState& state);

/// A parameter of which the ranks hold several copies: several stages use it, or its stage is in several replicas.
struct ParameterCopies {
  std::string name;
  struct Copy {
    int stage, rank;
  };
  /// Ascending by stage, then by replica. A rank that holds a stage in several replicas has one copy, which counts with
  /// the first of them.
  std::vector<Copy> copies;
};

/// Those parameters in `states` (of this rank's stages) that have several copies, in an order on which all ranks agree.
std::vector<ParameterCopies> parameter_copies(const std::map<int, split::StageState>& states,
                                              const std::vector<split::SharedParameter>& shared,
                                              const schedule::Schedule& schedule);

/// The number of tags that sum_copies uses.
inline constexpr int64_t kCopyTags = 4;

/// Sums the gradients of each parameter's copies in the order of the copies, ascending (stage, replica), and gives
/// every copy the sum. A copy without a gradient contributes nothing; if none has one, none gets one. Tags start at
/// `first_tag`; every rank calls it.
void sum_copies(const std::map<int, split::StageState>& states, const std::vector<ParameterCopies>& parameters,
                transport::Transport& transport, int64_t first_tag, const transport::Deadline& deadline);

/// Divides every gradient of the step.
void divide_gradients(const std::map<int, split::StageState>& states, double divisor);

}  // namespace plumbline::engine
