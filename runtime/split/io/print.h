// A pipe as readable text: its boundaries, its shared parameters, and each stage's graph.
//
//   pipe of 2 stages
//   stage 0: 3 calls, 1 parameter (64 elements), 0 buffers
//   stage 1: 1 call, 1 parameter (64 elements), 0 buffers
//   boundary "v5": f32[4,8]*, output 0 of stage 0 -> input 0 of stage 1, gradient returns
//   shared parameter "emb.weight": stages 0, 1
//
//   stage 0
//   input %0: f32[4,8] = "x"
//   ...
#pragma once

#include <string>

#include "runtime/split/pipe.h"

namespace plumbline::split {

std::string to_text(const Pipe& pipe);

/// "3 calls, 1 parameter (64 elements), 0 buffers". Elements are counted from captured shapes or bound tensors; a
/// parameter without either counts as 0.
std::string contents_text(const graph::Graph& graph);

}  // namespace plumbline::split
