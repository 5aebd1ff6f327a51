// The end of a step: makes the step's gradients final, and only then adds them to the gradients of earlier steps.
#pragma once

#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "runtime/schedule/schedule.h"
#include "runtime/split/pipe.h"
#include "runtime/transport/transport.h"

namespace plumbline::engine {

/// Throws InputError if `grad`, the gradient of `name`, is sparse, or laid out in another way that has no strides. May
/// be undefined.
void require_dense(const std::string& name, const at::Tensor& grad);

/// Moves the .grad of leaves aside, so that a step begins without gradients. Unless add_back() succeeded, the
/// destructor restores the earlier .grad, undefined if there was none, and drops the step's.
class GradientStash {
 public:
  /// The parameters in `states`. Throws InputError, having changed nothing, for a .grad of other sizes than its
  /// parameter's, and as require_dense() does.
  explicit GradientStash(const std::map<int, split::StageState>& states);
  ~GradientStash();
  GradientStash(const GradientStash&) = delete;
  GradientStash& operator=(const GradientStash&) = delete;

  /// Adds an input that is a leaf, unless it is there. Throws as the constructor does; `name` is for the error.
  void add(const std::string& name, const at::Tensor& leaf);

  /// Adds the step's .grad to the earlier gradients (in place where that is possible and no other tensor shares their
  /// memory) and makes the sum the leaf's .grad. Call once, after the step's gradients are final.
  void add_back();

 private:
  struct Entry {
    at::Tensor leaf, before;
    bool is_added = false;  // the leaf's .grad is the sum
  };
  void move_aside(const at::Tensor& leaf);

  std::vector<Entry> entries_;
  std::unordered_set<const c10::TensorImpl*> known_;  // the leaves of `entries_`, once an input was added
};

/// Copies every parameter gradient that shares memory with another tensor; call after each backward that adds to .grad
/// (a B, a W, and an I with weight work), because the next one, and weight work, add in place. If autograd reaches
/// several leaves through views, their gradients may share one memory (github.com/pytorch/pytorch/issues/34082): with
/// another parameter's gradient, with an input's gradient that is being sent, or with a gradient that a first half
/// keeps for its second half. Throws as require_dense() does.
void separate_gradients(const split::StageState& state);

/// Divides the .grad of every parameter by `divisor`, in place.
void divide_gradients(const std::map<int, split::StageState>& states, double divisor);

}  // namespace plumbline::engine
