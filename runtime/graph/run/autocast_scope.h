// AutocastScope: moves this thread's autocast state from region to region of a graph and restores it at the end.
#pragma once

#include <ATen/autocast_mode.h>

#include <algorithm>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::graph {

/// Enters and leaves regions as torch.autocast does: leaving the outermost region clears the cache of cast parameters.
/// LibTorch has one such cache per process; so if a region uses the cache, the scope holds a process-wide lock while it
/// is inside a region, and ranks that are threads do not clear each other's casts. `regions` must outlive the scope.
/// Make, use and destroy a scope on one thread: the autocast state is the thread's, and a thread must unlock what it
/// locked.
class AutocastScope {
 public:
  explicit AutocastScope(std::span<const AutocastRegion> regions) : regions_(regions) {}
  ~AutocastScope() { set(-1); }
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

  /// Makes `region` (an index in the regions, -1: none) the innermost region. May block on another thread's scope.
  void set(int32_t region) {
    if (region == current_) return;
    while (current_ > common_outer(region)) leave();
    enter(region);
  }

 private:
  struct Saved {
    bool enabled, cache;
    at::ScalarType dtype;
  };

  /// The innermost region that contains both the current region and `region`; -1: none.
  int32_t common_outer(int32_t region) const {
    int32_t mine = current_;
    while (mine != region) {  // outer regions have smaller numbers
      if (mine > region)
        mine = regions_[mine].outer;
      else
        region = regions_[region].outer;
    }
    return mine;
  }

  void enter(int32_t region) {
    if (region == current_) return;
    const AutocastRegion& r = regions_[region];
    enter(r.outer);
    if (saved_.empty() && uses_cache()) cache_lock_.lock();
    saved_.push_back({at::autocast::is_autocast_enabled(r.device), at::autocast::is_autocast_cache_enabled(),
                      at::autocast::get_autocast_dtype(r.device)});
    at::autocast::set_autocast_enabled(r.device, r.enabled);
    at::autocast::set_autocast_dtype(r.device, r.dtype);
    at::autocast::increment_nesting();
    at::autocast::set_autocast_cache_enabled(r.cache);
    current_ = region;
  }

  void leave() {
    const AutocastRegion& r = regions_[current_];
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(r.device, saved_.back().enabled);
    at::autocast::set_autocast_dtype(r.device, saved_.back().dtype);
    at::autocast::set_autocast_cache_enabled(saved_.back().cache);
    saved_.pop_back();
    current_ = r.outer;
    if (saved_.empty() && cache_lock_.owns_lock()) cache_lock_.unlock();
  }

  bool uses_cache() const {
    return std::any_of(regions_.begin(), regions_.end(), [](const AutocastRegion& r) { return r.enabled && r.cache; });
  }
  static std::recursive_mutex& cache_mutex() {  // recursive: a branch of a cond has a scope of its own
    static std::recursive_mutex mutex;
    return mutex;
  }

  std::span<const AutocastRegion> regions_;
  std::vector<Saved> saved_;
  std::unique_lock<std::recursive_mutex> cache_lock_{cache_mutex(), std::defer_lock};
  int32_t current_ = -1;
};

}  // namespace plumbline::graph
