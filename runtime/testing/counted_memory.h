// For tests: counts the bytes of all tensors on the CPU, of every thread, exactly.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

namespace plumbline::testing {

/// While alive, every new tensor's memory is counted; `live` and `peak` begin at 0. At most one at a time.
class CountedMemory {
 public:
  CountedMemory() : before_(c10::GetAllocator(c10::kCPU)) {
    static Counting counting;  // outlives the scope: blocks may
    c10::SetAllocator(c10::kCPU, &counting, 100);
    live = peak = 0;
  }
  ~CountedMemory() { c10::SetAllocator(c10::kCPU, before_, 100); }
  CountedMemory(const CountedMemory&) = delete;
  CountedMemory& operator=(const CountedMemory&) = delete;

  static inline std::atomic<int64_t> live = 0, peak = 0;

 private:
  /// Some kernels allocate without a context, so that a block's size cannot be kept there.
  class Counting : public c10::Allocator {
   public:
    c10::DataPtr allocate(size_t bytes) override {
      if (bytes == 0) return {nullptr, c10::Device(c10::kCPU)};
      void* const block = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
      {
        const std::lock_guard<std::mutex> lock(mutex);
        sizes[block] = static_cast<int64_t>(bytes);
      }
      const int64_t now = live += static_cast<int64_t>(bytes);
      for (int64_t before = peak; before < now && !peak.compare_exchange_weak(before, now);) continue;
      return {block, block, &release, c10::Device(c10::kCPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &release; }
    void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

   private:
    static void release(void* block) {
      const std::lock_guard<std::mutex> lock(mutex);
      const auto found = sizes.find(block);
      if (found == sizes.end()) return;  // nullptr
      live -= found->second;
      sizes.erase(found);
      std::free(block);
    }
    static inline std::mutex mutex;
    static inline std::unordered_map<void*, int64_t> sizes;
  };

  c10::Allocator* before_;
};

}  // namespace plumbline::testing
