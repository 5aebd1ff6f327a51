// KeptTensors: saves the content of tensors before a trial run of a model and restores it afterwards.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>

#include <vector>

namespace plumbline::capture {

/// The destructor restores each kept tensor in place: writes the content back if it changed, and detaches the tensor if
/// a run gave it a gradient history.
class KeptTensors {
 public:
  KeptTensors() = default;
  ~KeptTensors() {
    const c10::NoGradGuard no_grad;
    for (Kept& kept : kept_) {
      // A computation into the tensor may have given it a history.
      if (!kept.required_grad && kept.tensor.requires_grad()) kept.tensor.detach_();
      // Only changed tensors are written: a write bumps the version, and a pending backward would then fail.
      if (!at::equal(kept.tensor, kept.before)) kept.tensor.copy_(kept.before);
    }
  }
  KeptTensors(const KeptTensors&) = delete;
  KeptTensors& operator=(const KeptTensors&) = delete;

  /// Saves a copy of the content of `tensor`, to be restored later. Ignores undefined and meta tensors.
  void keep(const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.is_meta()) return;
    const c10::NoGradGuard no_grad;
    kept_.push_back({tensor, tensor.clone(), tensor.requires_grad()});
  }

 private:
  struct Kept {
    at::Tensor tensor, before;
    bool required_grad;
  };
  std::vector<Kept> kept_;
};

}  // namespace plumbline::capture
