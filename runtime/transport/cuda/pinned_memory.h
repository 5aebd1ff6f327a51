// Host memory that a device can use.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include "runtime/transport/cuda/library.h"

namespace plumbline::transport::cuda {

class PinnedMemory {
 public:
  PinnedMemory() = default;
  /// `library` must outlive the memory. Throws std::bad_alloc.
  PinnedMemory(const Library& library, size_t bytes) : library_(&library), bytes_(bytes) {
    if (library.host_alloc(&memory_, bytes, kHostAllocDefault) != CudaError::Success) throw std::bad_alloc();
  }
  PinnedMemory(PinnedMemory&& other) noexcept { swap(other); }
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~PinnedMemory() {
    if (memory_ != nullptr) library_->free_host(memory_);
  }

  /// At least `bytes` bytes, whose contents are undefined; allocates only to grow.
  void* at_least(const Library& library, size_t bytes) {
    if (bytes > bytes_ || memory_ == nullptr) *this = PinnedMemory(library, bytes);
    return memory_;
  }
  void* get() const { return memory_; }

 private:
  void swap(PinnedMemory& other) noexcept {
    std::swap(library_, other.library_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
  }

  const Library* library_ = nullptr;
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace plumbline::transport::cuda
