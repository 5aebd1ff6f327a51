// PinnedMemory: page-locked host memory (cudaHostAlloc), which devices can access.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include "runtime/transport/cuda/library.h"

namespace plumbline::transport::cuda {

/// Owns one block or none; can be moved, not copied. Not thread-safe.
class PinnedMemory {
 public:
  /// Has no block.
  PinnedMemory() = default;
  /// Allocates `bytes` bytes, whose contents are undefined. `library` must outlive the object. Throws std::bad_alloc if
  /// the allocation fails.
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

  /// Returns a block of at least `bytes` bytes. Keeps the present one if it is large enough. Otherwise allocates a
  /// block by `library`, which must outlive the object, and frees the old one: its contents are lost and pointers into
  /// it become invalid. Throws std::bad_alloc if the allocation fails; the old block then stays.
  void* at_least(const Library& library, size_t bytes) {
    if (bytes > bytes_ || memory_ == nullptr) *this = PinnedMemory(library, bytes);
    return memory_;
  }
  /// The size of the block; 0 if there is none.
  size_t bytes() const { return bytes_; }
  /// The block; null if there is none.
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
