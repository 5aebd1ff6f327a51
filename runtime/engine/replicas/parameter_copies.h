// The copies of parameters: a parameter that several stages use has a copy in each, and a stage that several ranks hold
// (replicas of the model) has its parameters on each.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/schedule/schedule.h"
#include "runtime/split/pipe.h"

namespace plumbline::engine {

/// A parameter with several copies.
struct ParameterCopies {
  std::string name;
  /// One copy: the stage that uses it, and the rank that holds it.
  struct Copy {
    int stage, rank;
  };
  /// Ascending by stage, then by replica. A rank that holds a stage in several replicas has one copy, listed at the
  /// first of these replicas.
  std::vector<Copy> copies;

  /// Whether one stage alone uses the parameter, so that its gradient is complete with the stage's last backward.
  bool is_of_one_stage() const { return copies.front().stage == copies.back().stage; }
};

/// Returns the parameters in `states` (this rank's stages) that have several copies, in an order that is the same on
/// all ranks. `stages_with`: by name, the stages of all ranks that have a copy, whether or not the step uses it: a copy
/// that only another step uses must not fall behind.
std::vector<ParameterCopies> parameter_copies(const std::map<int, split::StageState>& states,
                                              const std::map<std::string, std::set<int>>& stages_with,
                                              const schedule::Schedule& schedule);

/// The tags of messages about copies: the transport's largest tags, from first() to before end(). Each stage has tags
/// of its own, since ranks may execute the actions of their common stages in different orders.
class CopyTags {
 public:
  CopyTags(int64_t max_tag, int stages) : first_(max_tag - count(stages)), end_(max_tag) {}

  static int64_t count(int stages) { return 2 + int64_t{3} * stages; }
  int64_t first() const { return first_; }
  int64_t end() const { return end_; }

  /// For the sums at the end of the step: whether a gradient exists; the gradient has the next tag.
  int64_t at_end() const { return first_; }
  /// For the sum of one stage's gradients, likewise.
  int64_t reduce(int stage) const { return first_ + 2 + int64_t{3} * stage; }
  /// For the parts of one stage's parameters.
  int64_t gather(int stage) const { return reduce(stage) + 2; }

 private:
  int64_t first_, end_;
};

}  // namespace plumbline::engine
