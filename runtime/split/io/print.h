// Formats a pipe as readable text: its boundaries, shared parameters and local losses, and each stage's graph.
//
//   pipe of 2 stages
//   stage 0: 3 calls, 1 parameter (64 elements), 0 buffers
//   stage 1: 1 call, 1 parameter (64 elements), 0 buffers
//   boundary "v5": f32[4,8]*, output 0 of stage 0 -> input 0 of stage 1, gradient returns
//   shared parameter "emb.weight": stages 0, 1
//   local loss: output 1 of the model stays as output 2 of stage 0
//
//   stage 0
//   input %0: f32[4,8] = "x"
//   ...
#pragma once

#include <string>

#include "runtime/split/pipe.h"

namespace plumbline::split {

/// Returns the text above, which ends with a newline. In a value, * marks that it requires a gradient.
std::string to_text(const Pipe& pipe);

/// Returns "3 calls, 1 parameter (64 elements), 0 buffers". The number of elements is that of all parameters, from the
/// bound tensors or else the captured shapes; a parameter without either counts as 0.
std::string contents_text(const graph::Graph& graph);

}  // namespace plumbline::split
