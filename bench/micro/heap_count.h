// HeapCount: counts how often this thread calls operator new, with LibTorch's own calls counted separately.
//
//   HeapCount count;      // from here on
//   ...
//   count.requests();
#pragma once

#include <cstdint>

namespace plumbline::bench {

class HeapCount {
 public:
  HeapCount();
  ~HeapCount();
  HeapCount(const HeapCount&) = delete;
  HeapCount& operator=(const HeapCount&) = delete;

  /// Calls made by code outside LibTorch's libraries: ours, and the C++ library's on our behalf.
  int64_t requests() const { return requests_; }
  /// Calls made inside LibTorch's libraries: tensors, autograd nodes. (The elements of a tensor come from another
  /// allocator and are not counted.)
  int64_t of_torch() const { return of_torch_; }

  /// Called by operator new.
  static void note(const void* caller) noexcept;

 private:
  int64_t requests_ = 0, of_torch_ = 0;
};

}  // namespace plumbline::bench
