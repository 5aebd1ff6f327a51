// From a Pipe captured without memory to a stage's tensors: each rank creates only those of its own stage.
#pragma once

#include <functional>

#include "runtime/split/pipe.h"

namespace plumbline::split {

/// Creates the tensor of a parameter or buffer from its captured name, kind, sizes, dtype and meta tensor.
using MakeTensor = std::function<at::Tensor(const graph::Attribute&)>;

/// The state of `stage`, its parameters and buffers created by `make`; parameters require gradients as the captured
/// ones do. The state shares the memory of the tensors that `make` returns: for a parameter that several stages of one
/// process use, each call should return a separate tensor. Unset: tensors on the CPU with undefined content. Throws
/// InputError naming a tensor that is undefined, without memory, or of other sizes or dtype than the captured one.
StageState make_stage_state(const Pipe& pipe, int stage, const MakeTensor& make);

}  // namespace plumbline::split
