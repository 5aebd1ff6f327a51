// EngineObserver: is called with the values and gradients of a step when they are computed.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace plumbline::engine {

/// The tensors have no autograd history. An observer may keep them, but must not change them: they may share memory
/// with the step's values. All calls are made on the engine's thread; an exception fails the step.
class EngineObserver {
 public:
  virtual ~EngineObserver() = default;
  /// Called before the forward of `stage`, once for each boundary value that the stage consumes, also if its producer
  /// is on the same rank. `value` is a leaf of the autograd graph that was made for this stage and micro-batch; it
  /// requires a gradient if the value's gradient is needed. Tensor hooks on `value` are called in this step only.
  /// `value` may have no storage from the OFFLOAD of the stage and micro-batch until the first computation after their
  /// RELOAD.
  virtual void on_boundary_input(int stage, int microbatch, const std::string& name, const at::Tensor& value) {
    static_cast<void>(stage), static_cast<void>(microbatch), static_cast<void>(name), static_cast<void>(value);
  }
  /// Called after the forward of `stage`, once for each boundary value that the stage computed.
  virtual void on_forward(int stage, int microbatch, const std::string& name, const at::Tensor& value) = 0;
  /// Called after the B or I of `stage` (or its W, if the I left all to it), once for each boundary value that the
  /// stage consumes and that needs a gradient. `grad` is the gradient from this consumer only; the producer sums those
  /// of all its consumers later.
  virtual void on_backward(int stage, int microbatch, const std::string& name, const at::Tensor& grad) = 0;
  /// Called after the B or W of `stage`, once for each of its parameters that has a gradient. `grad` is the parameter's
  /// gradient summed over the micro-batches of this step so far, not divided by their number. It is a clone, made for
  /// each call: with an observer, every B and W copies all parameter gradients of its stage.
  virtual void on_parameter_gradient(int stage, int microbatch, const std::string& name, const at::Tensor& grad) = 0;
};

}  // namespace plumbline::engine
