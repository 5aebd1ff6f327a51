// SkipTracker: where skip tensors are between the module that stashes them and the one that pops them.
//
// Each thread has one, so that skippable modules work by themselves, outside any pipeline; whoever runs a model that
// must not meet what others left lays a fresh one over it (SkipTrackerScope). After SkipTracker of torchgpipe
// (skip/tracker.py). Its portals have no counterpart: a capture sees a skip as a value with uses far away, and split()
// makes that a direct edge between two stages.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/skip/skip_namespace.h"

namespace plumbline::skip {

/// What a skip tensor is known by.
struct SkipKey {
  SkipNamespace ns = SkipNamespace::common();
  std::string name;
  auto operator<=>(const SkipKey&) const = default;
};

class SkipTracker {
 public:
  /// Keeps `tensor` (undefined: None) until it is loaded; what was kept under this key before is dropped.
  void save(const SkipKey& key, at::Tensor tensor);
  /// Gives it away, or nothing when there is none.
  std::optional<at::Tensor> load(const SkipKey& key);
  /// What was saved and not yet loaded, in order.
  std::vector<SkipKey> kept() const;

 private:
  std::map<SkipKey, at::Tensor> tensors_;
};

/// This thread's.
SkipTracker& current_skip_tracker();

/// `tracker` is this thread's for as long as the scope lives. Scopes nest.
class SkipTrackerScope {
 public:
  explicit SkipTrackerScope(SkipTracker& tracker) noexcept;
  ~SkipTrackerScope();
  SkipTrackerScope(const SkipTrackerScope&) = delete;
  SkipTrackerScope& operator=(const SkipTrackerScope&) = delete;

 private:
  SkipTracker* outer_;
};

}  // namespace plumbline::skip
