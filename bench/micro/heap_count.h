// HeapCount: counts the calls of operator new by one thread, those made inside LibTorch's libraries separately, and the
// bytes that they hold at most. A program that links heap_count.cc gets its replacement of the global operator new.
//
//   HeapCount count;
//   ...
//   count.requests();
#pragma once

#include <cstddef>
#include <cstdint>

namespace plumbline::bench {

/// Counts on the thread that constructs it, from construction to destruction, and must be destroyed on that thread. A
/// thread may have only one at a time. Calls of the aligned forms of operator new are not counted. A call counts by its
/// immediate caller.
class HeapCount {
 public:
  HeapCount();
  ~HeapCount();
  HeapCount(const HeapCount&) = delete;
  HeapCount& operator=(const HeapCount&) = delete;

  /// Calls made outside LibTorch's libraries: by our code (with code inlined from LibTorch's headers) and by the C++
  /// library, on behalf of any code.
  int64_t requests() const { return requests_; }
  /// Calls made inside LibTorch's libraries: tensors, autograd nodes. (The elements of a tensor come from another
  /// allocator and are not counted.)
  int64_t of_torch() const { return of_torch_; }

  /// The most bytes held at one time since construction, beyond those held then; all callers together.
  int64_t peak_bytes() const { return peak_; }

  /// Called by operator new: counts a call whose return address is `caller`, for `bytes`, if the calling thread has a
  /// HeapCount.
  static void note(const void* caller, size_t bytes) noexcept;
  /// Called by operator delete.
  static void note_release(size_t bytes) noexcept;

 private:
  int64_t requests_ = 0, of_torch_ = 0, held_ = 0, peak_ = 0;
};

}  // namespace plumbline::bench
