#include "conformance/proof/shapes/hollow_memory.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/Allocator.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/error.h"

namespace plumbline::proof {
namespace {

constexpr size_t kBytes = size_t{1} << 46;  // 64 TiB of the 128 that a process can address
constexpr size_t kUnit = 64;

/// Pages without access: null until the first hollow tensor, and never given back.
std::atomic<std::byte*> reserved = nullptr;

std::byte* reserve() {
  void* const pages =
      mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, /*fd=*/-1, /*offset=*/0);
  if (pages == MAP_FAILED)
    throw Error("hollow tensors need 64 TiB of addresses, without memory; `ulimit -v` must be unlimited");
  return static_cast<std::byte*>(pages);
}

/// Hands out addresses: those of freed tensors of the same size first.
class HollowAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const size_t size = (bytes / kUnit + 1) * kUnit;
    const std::lock_guard lock(mutex_);
    Free& free = free_[size];
    if (free.blocks.empty()) {
      if (reserved == nullptr) reserved = reserve();
      if (size > kBytes - end_) throw Error("proof: no addresses are left for " + std::to_string(bytes) + " bytes");
      free.blocks.push_back(&blocks_.emplace_back(Block{*this, free, reserved + end_}));
      end_ += size;
    }
    Block* const block = free.blocks.back();
    free.blocks.pop_back();
    return {block->address, block, &give_back, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void*, const void*, size_t) const override {}

 private:
  struct Block;
  /// Those of one size.
  struct Free {
    std::vector<Block*> blocks;
  };
  struct Block {
    HollowAllocator& allocator;
    Free& free;
    std::byte* address;
  };
  static void give_back(void* context) {
    auto* const block = static_cast<Block*>(context);
    const std::lock_guard lock(block->allocator.mutex_);
    block->free.blocks.push_back(block);
  }

  std::mutex mutex_;
  std::map<size_t, Free> free_;  ///< by size
  std::deque<Block> blocks_;     ///< all of them, which live as long as their addresses
  size_t end_ = 0;
};

HollowAllocator& allocator() {
  static HollowAllocator* const one = new HollowAllocator;  // tensors may be freed at the very end
  return *one;
}

}  // namespace

at::Tensor hollow_tensor(at::IntArrayRef sizes, at::IntArrayRef strides, c10::ScalarType dtype) {
  return at::detail::empty_strided_generic(sizes, strides, &allocator(), c10::DispatchKeySet(c10::DispatchKey::CPU),
                                           dtype);
}

at::Tensor hollow_tensor(at::IntArrayRef sizes, c10::ScalarType dtype) {
  return at::detail::empty_generic(sizes, &allocator(), c10::DispatchKeySet(c10::DispatchKey::CPU), dtype,
                                   std::nullopt);
}

bool is_hollow(const void* address) {
  const std::byte* const begin = reserved;
  const auto* const place = static_cast<const std::byte*>(address);
  return begin != nullptr && begin <= place && place < begin + kBytes;
}

}  // namespace plumbline::proof
