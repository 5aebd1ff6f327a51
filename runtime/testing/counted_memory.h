// For tests: counts the bytes of all tensors on the CPU, of every thread, exactly.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>

#include <atomic>
#include <cstdint>

namespace plumbline::testing {

/// While alive, every new tensor's memory is counted; `live` and `peak` begin at 0. At most one at a time.
class CountedMemory {
 public:
  CountedMemory() : before_(c10::GetAllocator(c10::kCPU)), counting_(new Counting(before_)) {
    c10::SetAllocator(c10::kCPU, counting_, 100);
    live = peak = 0;
  }
  ~CountedMemory() { c10::SetAllocator(c10::kCPU, before_, 100); }
  CountedMemory(const CountedMemory&) = delete;
  CountedMemory& operator=(const CountedMemory&) = delete;

  static inline std::atomic<int64_t> live = 0, peak = 0;

 private:
  class Counting : public c10::Allocator {
   public:
    explicit Counting(c10::Allocator* inner) : inner_(inner) {}
    c10::DataPtr allocate(size_t bytes) override {
      const int64_t now = live += static_cast<int64_t>(bytes);
      for (int64_t before = peak; before < now && !peak.compare_exchange_weak(before, now);) continue;
      auto* block = new Block{inner_->allocate(bytes), bytes};
      return {block->data.get(), block, &release, c10::Device(c10::kCPU)};
    }
    void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

   private:
    struct Block {
      c10::DataPtr data;
      size_t bytes;
    };
    static void release(void* context) {
      auto* block = static_cast<Block*>(context);
      live -= static_cast<int64_t>(block->bytes);
      delete block;
    }
    c10::Allocator* inner_;
  };

  c10::Allocator* before_;
  Counting* counting_;  // outlives the scope: blocks may
};

}  // namespace plumbline::testing
