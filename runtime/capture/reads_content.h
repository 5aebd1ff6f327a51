// Which arguments of a call are read; the others are only shown by a view, overwritten, or asked for shape and type.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace plumbline::capture {

/// Whether the call of `op` whose arguments lie on the stack reads the content of argument number `argument`. False for
/// an argument of which the call returns either a view or a copy (to, reshape, contiguous), and for memory that it
/// overwrites wholly or in places.
bool reads_content(const c10::OperatorHandle& op, const torch::jit::Stack& stack, size_t argument);

}  // namespace plumbline::capture
