// StageRunner: the engine's interface to one stage. The engine moves values; a runner computes.
//
// GraphStage is the real runner. EngineOptions::decorate or a custom function replaces it: with an emulated stage that
// sleeps, or a decorator with one deliberate fault (conformance/mutants).
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

namespace plumbline::engine {

/// For each micro-batch the engine calls forward(), then either backward(), or backward_input() and later
/// backward_weight(). Between the halves the engine may run other micro-batches, including their backwards, and second
/// halves may run in another order than first halves. The backward is not called if the loss does not depend on the
/// stage.
class StageRunner {
 public:
  virtual ~StageRunner() = default;

  /// Runs the stage forward on one micro-batch. `inputs` are in the stage graph's order: leaves, which require a
  /// gradient if their gradient is needed. Writes one tensor for each graph output to `outputs`.
  virtual void forward(int microbatch, std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs) = 0;

  /// Runs the stage backward from `roots` (outputs, or the loss) with `root_grads`. Adds into the .grad of the stage's
  /// parameters; writes one slot for each input, undefined for an input without a gradient. The memory of a sent output
  /// may have been released (released_output.h).
  virtual void backward(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                        std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) = 0;

  /// The first half of backward(): writes the inputs' gradients, leaves the gradients of the parameters unchanged, and
  /// keeps the state for backward_weight(). Until then the caller may release roots, gradients and inputs, but must not
  /// change them.
  virtual void backward_input(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                              std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) = 0;

  /// The second half: adds into the .grad of the stage's parameters. Only after backward_input() of the same
  /// micro-batch.
  virtual void backward_weight(int microbatch) = 0;

  /// Called after a failed step: drops the state that first halves kept for their second halves.
  virtual void drop_halves() noexcept = 0;
};

}  // namespace plumbline::engine
