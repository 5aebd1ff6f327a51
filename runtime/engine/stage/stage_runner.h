// StageRunner: the engine's interface to one stage. The engine moves values; a runner computes.
//
// The real one is GraphStage. Others replace it from outside: an emulated stage that sleeps, or a decorator with one
// deliberate fault (conformance/mutants).
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

namespace plumbline::engine {

/// For each micro-batch: forward(), then either backward(), or backward_input() and later backward_weight(). Between
/// the halves other micro-batches may run, including their backwards, and weights may run in another order than inputs.
class StageRunner {
 public:
  virtual ~StageRunner() = default;

  /// Runs the stage forward on one micro-batch. `inputs` are in the stage graph's order (leaves that require a gradient
  /// if one is needed); writes one tensor for each graph output.
  virtual void forward(int microbatch, std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs) = 0;

  /// Runs the stage backward: from `roots` (outputs, or the loss) with `root_grads`, adding into the stage's parameter
  /// gradients; writes one slot for each input, undefined if it has no gradient. The memory of a sent output may be
  /// released (released_output.h).
  virtual void backward(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                        std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) = 0;

  /// The first half of backward(): writes the inputs' gradients, leaves those of the parameters unchanged, and keeps
  /// the state for backward_weight(). The caller releases roots, gradients and inputs, and changes none of them.
  virtual void backward_input(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                              std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) = 0;

  /// The second half: adds into the stage's parameter gradients. Only after backward_input() of the same micro-batch.
  virtual void backward_weight(int microbatch) = 0;

  /// The step has failed: drops the state that first halves kept for their second ones.
  virtual void drop_halves() noexcept = 0;
};

}  // namespace plumbline::engine
