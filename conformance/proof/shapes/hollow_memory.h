// Hollow memory: addresses without bytes. A hollow tensor is a CPU tensor of any size to all code that does not touch
// its elements: it has sizes, strides, a dtype, and an address of its own, and takes no memory. An access to an element
// is a segmentation fault.
#pragma once

#include <ATen/core/Tensor.h>

namespace plumbline::proof {

/// A new hollow tensor with these strides, in elements. Throws Error if the process has no addresses left for it.
at::Tensor hollow_tensor(at::IntArrayRef sizes, at::IntArrayRef strides, c10::ScalarType dtype);
/// The same, without gaps.
at::Tensor hollow_tensor(at::IntArrayRef sizes, c10::ScalarType dtype);

/// Whether the address is one of hollow memory.
bool is_hollow(const void* address);

}  // namespace plumbline::proof
