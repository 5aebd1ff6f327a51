// The root graph of a pipe: one call for each stage and, with a loss, one for each stage's backward.
//
// It is an ordinary Graph, so it prints, parses and draws as one, with three custom operators:
//
//   [%1: f32[4,8]*, %2: f32[4,8]*] = plumbline::call_stage(0, [%0])
//   [%3: f32[]*] = plumbline::call_stage(1, [%1, %2])
//   [%4: f32[4,8], %5: f32[4,8]] = plumbline::stage_backward([%3], [None], [%1, %2])
//   [None] = plumbline::stage_backward([%1, %2], [%4, %5], [%0])
//   return %3
//
// The third, null_coalesce_accumulate, adds the gradients of a value that several stages use. DetachExecutor
// (reference/detach/detach_executor.h) runs the graph; a Program refuses it. After PyTorch's
// torch.distributed.pipelining
// (_IR.py, _insert_stage_symbolic_backward).
#pragma once

#include <optional>

#include "runtime/split/pipe.h"

namespace plumbline::reference {

/// call_stage(i, inputs) lists the inputs of stage i's graph and results in its outputs. A value that a stage only
/// forwards keeps its name from its producer, and is None in the results of that stage.
///
/// With `loss_output` (an index of the model's outputs) the stages that the loss depends on are followed in reverse
/// order by stage_backward(stage_output, output_grads, input_values): the outputs that have a gradient or are the loss,
/// their gradients (None for the loss), and the stage's inputs; it results in the inputs' gradients, None for one that
/// the loss does not depend on. A value to which the seed would give an empty gradient (a stage that the loss depends
/// on uses it, but not on the way to the loss) has none here. As in the seed, gradients of the model's inputs are not
/// summed.
///
/// Throws InputError when the model has no such output, or it is not one number that requires a gradient.
graph::Graph root_graph(const split::Pipe& pipe, std::optional<int> loss_output = std::nullopt);

/// A pipe's description without its stages: nothing here keeps their graphs or tensors alive.
struct PipeInfo {
  graph::Graph root;
  int num_stages = 0;
  bool has_loss_and_backward = false;
};

/// Throws InputError as root_graph() does.
PipeInfo info(const split::Pipe& pipe, std::optional<int> loss_output = std::nullopt);

}  // namespace plumbline::reference
