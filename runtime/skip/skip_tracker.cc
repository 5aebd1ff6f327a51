#include "runtime/skip/skip_tracker.h"

#include <utility>

namespace plumbline::skip {
namespace {

thread_local SkipTracker own_tracker;
thread_local SkipTracker* current = nullptr;

}  // namespace

void SkipTracker::save(const SkipKey& key, at::Tensor tensor) { tensors_.insert_or_assign(key, std::move(tensor)); }

std::optional<at::Tensor> SkipTracker::load(const SkipKey& key) {
  auto node = tensors_.extract(key);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped());
}

std::vector<SkipKey> SkipTracker::kept() const {
  std::vector<SkipKey> keys;
  for (const auto& [key, tensor] : tensors_) keys.push_back(key);
  return keys;
}

SkipTracker& current_skip_tracker() { return current ? *current : own_tracker; }

SkipTrackerScope::SkipTrackerScope(SkipTracker& tracker) noexcept : outer_(std::exchange(current, &tracker)) {}
SkipTrackerScope::~SkipTrackerScope() { current = outer_; }

}  // namespace plumbline::skip
