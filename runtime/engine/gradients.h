// The end of a step: this step's gradients are finished, and only then added to what was there before.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/schedule/schedule.h"
#include "runtime/split/pipe.h"
#include "runtime/transport/transport.h"

namespace plumbline::engine {

/// Moves the .grad of every parameter aside for as long as a step runs, so that the step begins with none. A step that
/// fails leaves the gradients as they were before it.
class GradientStash {
 public:
  explicit GradientStash(const std::map<int, split::StageState>& states);
  ~GradientStash();
  GradientStash(const GradientStash&) = delete;
  GradientStash& operator=(const GradientStash&) = delete;

  /// Adds what the step left in .grad to what was moved aside. Called once, after the step's gradients are final.
  void add_back();

 private:
  struct Entry {
    at::Tensor parameter, before;
  };
  std::vector<Entry> entries_;
};

/// After a backward, or its second half: gives every parameter's gradient memory of its own, because the next one adds
/// to it in place. Autograd hands several leaves one memory where it reached them through views
/// (github.com/pytorch/pytorch/issues/34082): other parameters, inputs whose gradients are on their way to other
/// stages, and what a first half keeps for its second.
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

/// Those of the parameters in `states` (of this rank's stages) that have several copies, in an order on which all ranks
/// agree.
std::vector<ParameterCopies> parameter_copies(const std::map<int, split::StageState>& states,
                                              const std::vector<split::SharedParameter>& shared,
                                              const schedule::Schedule& schedule);

/// How many tags sum_copies takes.
inline constexpr int64_t kCopyTags = 4;

/// Sums the gradients of each parameter's copies in the order of the copies, ascending (stage, replica), and gives
/// every copy the sum. A copy without a gradient takes no part; if none has one, none gets one. Tags start at
/// `first_tag`; every rank calls it.
void sum_copies(const std::map<int, split::StageState>& states, const std::vector<ParameterCopies>& parameters,
                transport::Transport& transport, int64_t first_tag, const transport::Deadline& deadline);

/// Divides every gradient of the step.
void divide_gradients(const std::map<int, split::StageState>& states, double divisor);

}  // namespace plumbline::engine
