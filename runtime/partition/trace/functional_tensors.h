// Functionalisation with LibTorch's functional tensors: an in-place write above the dispatch key Functionalize arrives
// as a call with a new result below the key.
//
// A functional tensor (ATen/FunctionalTensorWrapper.h) looks like any other tensor to autograd. It wraps a plain tensor
// that is never written: a write replaces the plain tensor, and views of the same memory are updated at their next use.
#pragma once

#include <ATen/FunctionalTensorWrapper.h>
#include <c10/core/AutogradState.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "runtime/capture/interpose.h"

namespace plumbline::partition {

/// Returns a functional leaf with the memory and requires_grad of `tensor`. Writes to the leaf do not change `tensor`.
inline at::Tensor functional_leaf(const at::Tensor& tensor) {
  at::Tensor leaf = at::functionalization::impl::to_functional_tensor(tensor.detach());
  leaf.unsafeGetTensorImpl()->set_requires_grad(tensor.requires_grad());
  return leaf;
}

/// Returns the plain tensor of a functional tensor, with all pending writes applied; returns any other tensor
/// unchanged. Call inside a FunctionalRun, because applying the writes calls operators.
inline at::Tensor plain(const at::Tensor& tensor) {
  if (!tensor.defined() || !at::functionalization::impl::isFunctionalTensor(tensor)) return tensor;
  at::functionalization::impl::sync(tensor);
  return at::functionalization::impl::from_functional_tensor(tensor);
}

/// A scope in which this thread's operator calls are recorded by autograd, then functionalised, then sent to `below`. A
/// backward started in the scope runs on this thread, for tensors on any device.
class FunctionalRun {
 public:
  /// `below` must outlive the scope.
  explicit FunctionalRun(capture::Interposer& below)
      : multithreading_(c10::AutogradState::get_tls_state().get_multithreading_enabled()),
        below_(below),
        functionalize_(c10::DispatchKey::Functionalize) {
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  }
  ~FunctionalRun() { c10::AutogradState::get_tls_state().set_multithreading_enabled(multithreading_); }
  FunctionalRun(const FunctionalRun&) = delete;
  FunctionalRun& operator=(const FunctionalRun&) = delete;

 private:
  const bool multithreading_;
  const c10::AutoGradMode recording_{true};
  /// A view arrives as view, not view_copy: values share memory below as they do above.
  const at::functionalization::impl::FunctionalizationReapplyViewsGuard views_{true};
  const capture::InterposerScope below_;
  const c10::impl::IncludeDispatchKeyGuard functionalize_;
};

}  // namespace plumbline::partition
