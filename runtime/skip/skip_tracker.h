// SkipTracker: holds a skip tensor between the module that stashes it and the module that pops it.
//
// Each thread has a tracker, so that skippable modules also work outside any pipeline. Code that runs a model and must
// not see tensors left over from another run installs a new tracker (SkipTrackerScope). After SkipTracker of torchgpipe
// (skip/tracker.py). torchgpipe's portals have no counterpart: in a captured graph a skip is a value with distant uses,
// for which split() makes a direct edge between two stages.
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

/// Not thread-safe.
class SkipTracker {
 public:
  /// Keeps `tensor` (undefined: None) until load(); replaces an earlier tensor under this key.
  void save(const SkipKey& key, at::Tensor tensor);
  /// Removes and returns the tensor; nullopt if there is none under this key.
  std::optional<at::Tensor> load(const SkipKey& key);
  /// The keys of the tensors that were saved and not yet loaded, sorted.
  std::vector<SkipKey> kept() const;

 private:
  std::map<SkipKey, at::Tensor> tensors_;
};

/// The tracker of the innermost SkipTrackerScope of this thread, otherwise the thread's own tracker.
SkipTracker& current_skip_tracker();

/// Makes `tracker` the current tracker of this thread for the lifetime of the scope. Scopes nest. `tracker` must
/// outlive the scope.
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
