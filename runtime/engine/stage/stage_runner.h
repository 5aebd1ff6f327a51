// StageRunner: what the engine asks of one stage. The engine moves values; a runner computes.
//
// The real one is GraphStage. Others stand in its place from outside: an emulated stage that sleeps, or a
// decorator that does one thing wrong on purpose (conformance/mutants).
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

namespace plumbline::engine {

/// Of each micro-batch: forward(), then either backward(), or backward_input() and some time later backward_weight().
/// Between the halves other micro-batches may come, also their backwards, and weights may come in another order than
/// inputs.
class StageRunner {
 public:
  virtual ~StageRunner() = default;

  /// Runs the stage forward on one micro-batch. `inputs` are in the stage graph's order (leaves that require a gradient
  /// where one is wanted); writes one tensor for each graph output.
  virtual void forward(int microbatch, std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs) = 0;

  /// Runs the stage backward: from `roots` (outputs, or the loss) with `root_grads`, adding into the stage's parameter
  /// gradients; writes one slot for each input, undefined where it has no gradient. An output that was sent may be
  /// without its memory (released_output.h).
  virtual void backward(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                        std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) = 0;

  /// The first half of backward(): writes the inputs' gradients, leaves those of the parameters alone, and keeps what
  /// backward_weight() needs. The caller lets go of roots, gradients and inputs, and changes none of them.
  virtual void backward_input(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                              std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) = 0;

  /// The second half: adds into the stage's parameter gradients. Only after backward_input() of the same micro-batch.
  virtual void backward_weight(int microbatch) = 0;

  /// The step has failed: what first halves kept for their second ones goes.
  virtual void drop_halves() noexcept = 0;
};

}  // namespace plumbline::engine
