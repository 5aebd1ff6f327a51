// EngineObserver: notified of the values and gradients of a step when they are computed.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace plumbline::engine {

/// Tensors have no autograd history and may be kept, but must not be changed: they may share memory with the step's
/// values. Called on the engine's thread; an exception fails the step.
class EngineObserver {
 public:
  virtual ~EngineObserver() = default;
  /// A boundary value that `stage` receives, before the stage runs. `value` is a leaf made for this stage and
  /// micro-batch, and requires a gradient if the value's gradient is needed; so tensor hooks on `value` end with the
  /// step, and the value's memory leaves with the OFFLOAD of the stage and micro-batch until their RELOAD.
  virtual void on_taken(int stage, int microbatch, const std::string& name, const at::Tensor& value) {
    static_cast<void>(stage), static_cast<void>(microbatch), static_cast<void>(name), static_cast<void>(value);
  }
  /// A boundary value that `stage` computed.
  virtual void on_forward(int stage, int microbatch, const std::string& name, const at::Tensor& value) = 0;
  /// The gradient of the boundary value `name`, computed by the stage that consumes the value.
  virtual void on_backward(int stage, int microbatch, const std::string& name, const at::Tensor& grad) = 0;
  /// Called after the B or W of `microbatch` for each parameter with a gradient: the gradient of parameter `name` of
  /// `stage` summed over this step so far, not divided by the number of micro-batches. `grad` is a copy.
  virtual void on_partial(int stage, int microbatch, const std::string& name, const at::Tensor& grad) = 0;
  /// The gradient of the model's input with index `input`, if the input requires a gradient and got one; not divided by
  /// the number of micro-batches.
  virtual void on_input_gradient(int microbatch, int input, const at::Tensor& grad) {
    static_cast<void>(microbatch), static_cast<void>(input), static_cast<void>(grad);
  }
};

}  // namespace plumbline::engine
