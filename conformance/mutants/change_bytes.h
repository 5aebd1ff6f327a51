// Changes the bytes of tensors, as a fault of memory would: on any device, and unseen by autograd.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>

namespace plumbline::conformance {

/// Calls `change` with the bytes of the tensor's elements, and puts them back into the tensor's memory. They travel
/// through a copy on the host, on the CPU too: the host cannot write memory of a device. The tensor's version stays.
template <class Change>
void change_bytes(const at::Tensor& tensor, const Change& change) {
  const at::Tensor copy =
      tensor.variable_data().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true, at::MemoryFormat::Contiguous);
  change(std::span(static_cast<std::byte*>(copy.mutable_data_ptr()), copy.nbytes()));
  tensor.variable_data().copy_(copy);
}

/// Flips the last bit of the first element.
inline void flip_last_bit(const at::Tensor& tensor) {
  change_bytes(tensor, [](std::span<std::byte> bytes) { bytes.front() ^= std::byte{1}; });
}

}  // namespace plumbline::conformance
