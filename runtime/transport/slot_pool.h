// SlotPool: the slots behind a transport's requests. Slots are reused and never move; nothing is allocated while the
// number of outstanding requests stays below its maximum so far. Not thread-safe; other threads may access a slot, but
// not the pool.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "runtime/transport/errors.h"
#include "runtime/transport/transport.h"

namespace plumbline::transport {

template <typename Slot>
class SlotPool {
 public:
  /// Returns a free slot, in the state that its last user left, and sets `request` to its handle.
  Slot& take(Request& request) {
    if (free_.empty()) {
      if (free_.capacity() <= entries_.size()) free_.reserve(2 * entries_.size() + 16);  // release must not fail
      entries_.emplace_back();
      free_.push_back(static_cast<uint32_t>(entries_.size() - 1));
    }
    const uint32_t index = free_.back();
    free_.pop_back();
    Entry& entry = entries_[index];
    entry.used = true;
    request = Request(index, entry.generation);
    return entry.slot;
  }

  /// Returns the slot of an outstanding request; null for an empty handle or a handle whose slot was released.
  Slot* find(const Request& request) {
    if (request.slot() >= entries_.size()) return nullptr;
    Entry& entry = entries_[request.slot()];
    return entry.used && entry.generation == request.generation() ? &entry.slot : nullptr;
  }

  /// Returns the slot of an outstanding request of `rank`; throws Error, which names the rank, where find() returns
  /// null.
  Slot& at(const Request& request, int rank) {
    Slot* const slot = find(request);
    if (slot == nullptr) throw_stale_request(rank);
    return *slot;
  }

  /// Releases the slot of an outstanding request and empties the handle.
  void give_back(Request& request) {
    release(request.slot());
    request = Request();
  }

  /// Calls `f(slot)` for every outstanding request and releases the slot. Their handles become stale.
  template <typename F>
  void drain(const F& f) {
    for (uint32_t index = 0; index < entries_.size(); ++index) {
      if (!entries_[index].used) continue;
      f(entries_[index].slot);
      release(index);
    }
  }

 private:
  struct Entry {
    Slot slot;
    uint32_t generation = 1;  // 0 is reserved for the empty request
    bool used = false;
  };

  void release(uint32_t index) {
    Entry& entry = entries_[index];
    entry.used = false;
    if (++entry.generation == 0) entry.generation = 1;
    free_.push_back(index);
  }

  std::deque<Entry> entries_;  // grows without moving slots, to which other threads may hold pointers
  std::vector<uint32_t> free_;
};

}  // namespace plumbline::transport
