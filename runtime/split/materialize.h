// Creates the tensors of one stage of a Pipe that was captured without memory, so that each rank creates only those of
// its own stages.
#pragma once

#include <functional>

#include "runtime/split/pipe.h"

namespace plumbline::split {

/// Creates the tensor of a parameter or buffer. The attribute has the name, the kind and the captured (meta) tensor
/// with sizes and dtype.
using MakeTensor = std::function<at::Tensor(const graph::Attribute&)>;

/// Returns the state of `stage`, with parameters and buffers created by `make`; requires_grad is that of the captured
/// tensors. The state shares the memory of the tensors that `make` returns: for a parameter that several stages of one
/// process use, each call should return a separate tensor. If `make` is empty, tensors are on the CPU with undefined
/// content. Throws InputError naming a tensor that is undefined, on the meta device, or of other sizes or dtype than
/// the captured one.
StageState make_stage_state(const Pipe& pipe, int stage, const MakeTensor& make);

/// make_stage_state() of pipe.h, with the state on `device`.
StageState make_stage_state(const Pipe& pipe, int stage, c10::Device device);

/// bind() of pipe.h to a state on `device`, to which the rest of the graph is moved (graph/device.h).
void bind(graph::Graph& graph, const StageState& state, c10::Device device);

}  // namespace plumbline::split
