// EngineObserver: sees the values of a step as they are computed.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace plumbline::engine {

/// Tensors are detached and may be kept. Called on the engine's thread.
class EngineObserver {
 public:
  virtual ~EngineObserver() = default;
  /// A boundary value that `stage` receives, before it runs; a leaf of this micro-batch alone that requires a gradient
  /// if one is needed, so that hooks on it end with the step.
  virtual void on_taken(int stage, int microbatch, const std::string& name, const at::Tensor& value) {
    static_cast<void>(stage), static_cast<void>(microbatch), static_cast<void>(name), static_cast<void>(value);
  }
  /// A boundary value that `stage` made.
  virtual void on_forward(int stage, int microbatch, const std::string& name, const at::Tensor& value) = 0;
  /// The gradient that `stage` returns for one of its inputs.
  virtual void on_backward(int stage, int microbatch, const std::string& name, const at::Tensor& grad) = 0;
  /// After the B or W of `microbatch`: the gradient of parameter `name` of `stage` accumulated in this step, not
  /// divided.
  virtual void on_partial(int stage, int microbatch, const std::string& name, const at::Tensor& grad) = 0;
  /// The gradient of the model's input `input`, if it requires one and got one; not divided.
  virtual void on_input_gradient(int microbatch, int input, const at::Tensor& grad) {
    static_cast<void>(microbatch), static_cast<void>(input), static_cast<void>(grad);
  }
};

}  // namespace plumbline::engine
