// AllocationCount: the bytes of CPU tensors that this thread has allocated and not released, as counted by LibTorch's
// allocator.
//
//   AllocationCount count;      // from here on
//   ...
//   EXPECT_LE(count.peak(), 1024);
#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <cstdint>
#include <memory>

namespace plumbline::testing {

class AllocationCount {
 public:
  /// Bytes allocated minus bytes released since the construction; negative where older memory was released.
  int64_t alive() const { return counter_->alive; }
  /// The largest value of that number so far.
  int64_t peak() const { return counter_->peak; }
  /// Resets the peak.
  void restart() { counter_->peak = counter_->alive; }

 private:
  struct Counter : c10::MemoryReportingInfoBase {
    void reportMemoryUsage(void*, int64_t size, size_t, size_t, c10::Device) override {
      alive += size;
      peak = std::max(peak, alive);
    }
    bool memoryProfilingEnabled() const override { return true; }
    int64_t alive = 0, peak = 0;
  };

  std::shared_ptr<Counter> counter_ = std::make_shared<Counter>();
  c10::DebugInfoGuard guard_{c10::DebugInfoKind::PROFILER_STATE, counter_};
};

}  // namespace plumbline::testing
