// The memory of operations that have been posted and have not ended, in this process.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

namespace plumbline::transport::nccl::stub {

/// Tells whether a receive's memory may be poisoned before the receive runs: only another operation could notice that.
class MemoryInUse {
 public:
  /// Marks these bytes as in use. Returns whether no other operation uses any of them.
  bool add(const void* memory, size_t bytes) {
    const auto* begin = static_cast<const char*>(memory);
    std::lock_guard lock(mutex_);
    bool alone = true;
    for (const Range& range : ranges_) alone = alone && (range.end <= begin || begin + bytes <= range.begin);
    ranges_.push_back({begin, begin + bytes});
    return alone;
  }
  void remove(const void* memory, size_t bytes) {
    const auto* begin = static_cast<const char*>(memory);
    std::lock_guard lock(mutex_);
    for (Range& range : ranges_) {
      if (range.begin != begin || range.end != begin + bytes) continue;
      range = ranges_.back();
      ranges_.pop_back();
      return;
    }
  }

 private:
  struct Range {
    const char *begin, *end;
  };
  std::mutex mutex_;
  std::vector<Range> ranges_;
};

}  // namespace plumbline::transport::nccl::stub
