// SkipTracker: holds skip tensors between the module that stashes them and the one that pops them.
//
// Each thread has one, so that skippable modules work alone, outside any pipeline. Code that runs a model and must not
// see leftovers installs a fresh one (SkipTrackerScope). After SkipTracker of torchgpipe (skip/tracker.py). Its portals
// have no counterpart: a capture sees a skip as a value with distant uses, and split() turns that into a direct edge
// between two stages.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/skip/skip_namespace.h"

namespace plumbline::skip {

/// The key of a skip tensor.
struct SkipKey {
  SkipNamespace ns = SkipNamespace::common();
  std::string name;
  auto operator<=>(const SkipKey&) const = default;
};

class SkipTracker {
 public:
  /// Keeps `tensor` (undefined: None) until it is loaded; drops any earlier tensor under this key.
  void save(const SkipKey& key, at::Tensor tensor);
  /// Returns and releases the tensor, or nothing when there is none.
  std::optional<at::Tensor> load(const SkipKey& key);
  /// The keys of tensors saved and not yet loaded, in order.
  std::vector<SkipKey> kept() const;

 private:
  std::map<SkipKey, at::Tensor> tensors_;
};

/// This thread's tracker.
SkipTracker& current_skip_tracker();

/// Makes `tracker` this thread's for the lifetime of the scope. Scopes nest.
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
