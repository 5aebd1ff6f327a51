// The root graph of a pipe: one call for each stage and, with a loss, one for each stage's backward.
//
// The root graph is an ordinary Graph, so the same functions print, parse and draw it. It has three custom operators:
//
//   [%1: f32[4,8]*, %2: f32[4,8]*] = plumbline::call_stage(0, [%0])
//   [%3: f32[]*] = plumbline::call_stage(1, [%1, %2])
//   [%4: f32[4,8], %5: f32[4,8]] = plumbline::stage_backward([%3], [None], [%1, %2])
//   [None] = plumbline::stage_backward([%1, %2], [%4, %5], [%0])
//   return %3
//
// The third, null_coalesce_accumulate, adds the gradients of a value that several stages use. DetachExecutor
// (reference/detach/detach_executor.h) runs the graph; a Program refuses it. After PyTorch's
// torch.distributed.pipelining (_IR.py, _insert_stage_symbolic_backward).
#pragma once

#include <optional>

#include "runtime/split/pipe.h"

namespace plumbline::reference {

/// call_stage(i, inputs) takes the inputs of stage i's graph and returns its outputs. A value that a stage only passes
/// on keeps its name from its producer and is None in the results of that stage.
///
/// With `loss_output` (an index of the model's outputs) a stage_backward(stage_output, output_grads, input_values)
/// follows for each stage that the loss depends on, in reverse order. It takes the outputs that have a gradient or are
/// the loss, their gradients (None for the loss), and the stage's inputs; it returns the gradients of the inputs, None
/// for an input that the loss does not depend on. A value to which PyTorch gives an empty gradient (a stage that the
/// loss depends on uses the value, but not on the way to the loss) has no gradient here. As in PyTorch, gradients of
/// the model's inputs are not summed.
///
/// Throws InputError if the model has no such output, or if that output is not one number that requires a gradient.
graph::Graph root_graph(const split::Pipe& pipe, std::optional<int> loss_output = std::nullopt);

/// A pipe's description without its stages: keeps none of their graphs and tensors alive.
struct PipeInfo {
  graph::Graph root;
  int num_stages = 0;
  /// Whether a loss output was given.
  bool has_loss_and_backward = false;
};

/// Throws InputError as root_graph() does.
PipeInfo info(const split::Pipe& pipe, std::optional<int> loss_output = std::nullopt);

}  // namespace plumbline::reference
