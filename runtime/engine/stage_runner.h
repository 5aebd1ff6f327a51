// StageRunner: what the engine asks of one stage. The engine moves values; a runner computes.
//
// The real one is GraphStage. Others stand in its place from outside: an emulated stage that sleeps, or a
// decorator that does one thing wrong on purpose (conformance/mutants).
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

namespace plumbline {

class StageRunner {
 public:
  virtual ~StageRunner() = default;

  /// Runs the stage forward on one micro-batch. `inputs` are in the stage graph's order (leaves that require a gradient
  /// where one is wanted); writes one tensor for each graph output.
  virtual void forward(int microbatch, std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs) = 0;

  /// Runs the stage backward: from `roots` (outputs, or the loss) with `root_grads`, adding into the stage's parameter
  /// gradients; writes one slot for each input, undefined where it has no gradient.
  virtual void backward(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                        std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) = 0;
};

}  // namespace plumbline
