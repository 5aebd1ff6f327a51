#include "bench/micro/heap_count.h"

#include <link.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

namespace plumbline::bench {
namespace {

thread_local HeapCount* counting = nullptr;

struct Range {
  uintptr_t begin = 0, end = 0;
};
constexpr size_t kMaxRanges = 64;

/// The address ranges of the code of LibTorch's libraries.
struct TorchCode {
  Range ranges[kMaxRanges];  // not a vector: operator new reads it
  size_t count = 0;

  TorchCode() { dl_iterate_phdr(add, this); }

  bool contains(const void* address) const {
    const auto at = reinterpret_cast<uintptr_t>(address);
    return std::any_of(ranges, ranges + count,
                       [at](const Range& range) { return range.begin <= at && at < range.end; });
  }

  static int add(dl_phdr_info* library, size_t, void* self) {
    auto& code = *static_cast<TorchCode*>(self);
    const char* const slash = std::strrchr(library->dlpi_name, '/');
    const std::string_view name = slash ? slash + 1 : library->dlpi_name;
    if (!name.starts_with("libtorch") && !name.starts_with("libc10")) return 0;
    for (int i = 0; i < library->dlpi_phnum && code.count < kMaxRanges; ++i) {
      const auto& part = library->dlpi_phdr[i];
      if (part.p_type != PT_LOAD || !(part.p_flags & PF_X)) continue;
      const uintptr_t begin = library->dlpi_addr + part.p_vaddr;
      code.ranges[code.count++] = {begin, begin + part.p_memsz};
    }
    return 0;
  }
};

}  // namespace

HeapCount::HeapCount() { counting = this; }
HeapCount::~HeapCount() { counting = nullptr; }

void HeapCount::note(const void* caller, size_t bytes) noexcept {
  if (!counting) return;
  static const TorchCode torch;
  ++(torch.contains(caller) ? counting->of_torch_ : counting->requests_);
  counting->held_ += static_cast<int64_t>(bytes);
  counting->peak_ = std::max(counting->peak_, counting->held_);
}

void HeapCount::note_release(size_t bytes) noexcept {
  if (counting) counting->held_ -= static_cast<int64_t>(bytes);
}

}  // namespace plumbline::bench

namespace {

/// Null without memory.
void* counted(std::size_t size, const void* caller) noexcept {
  void* const memory = std::malloc(size > 0 ? size : 1);
  if (memory) plumbline::bench::HeapCount::note(caller, malloc_usable_size(memory));
  return memory;
}

}  // namespace

// Replaces the C++ library's operator new in the whole program: both forms, since AddressSanitizer has its own of
// either.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return counted(size, __builtin_return_address(0));
}
void* operator new(std::size_t size) {
  void* const memory = counted(size, __builtin_return_address(0));
  if (!memory) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  plumbline::bench::HeapCount::note_release(malloc_usable_size(memory));
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
