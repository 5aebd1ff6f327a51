// From a Pipe captured without memory to a stage's tensors: each rank makes those of its own stage alone.
#pragma once

#include <functional>

#include "runtime/split/pipe.h"

namespace plumbline::split {

/// Makes the tensor of a parameter or buffer from what the capture knows of it: name, kind, sizes, dtype, its tensor on
/// the meta device.
using MakeTensor = std::function<at::Tensor(const graph::Attribute&)>;

/// The state of `stage`, its parameters and buffers made by `make`; parameters require gradients as the captured ones
/// do. The state shares the memory of what `make` returns: for a parameter that several stages of one process use, each
/// call should give a tensor of its own. Unset: tensors on the CPU with undefined content. Throws InputError naming a
/// tensor that is undefined, without memory, or of other sizes or dtype than the captured one.
StageState make_stage_state(const Pipe& pipe, int stage, const MakeTensor& make);

}  // namespace plumbline::split
