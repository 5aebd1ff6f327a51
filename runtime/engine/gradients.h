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

/// Divides the .grad of every parameter by `divisor`, in place.
void divide_gradients(const std::map<int, split::StageState>& states, double divisor);

}  // namespace plumbline::engine
