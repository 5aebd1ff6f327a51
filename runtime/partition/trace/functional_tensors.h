// Functionalisation by LibTorch's own functional tensors: what is written in place above comes out as new values below.
//
// A functional tensor (ATen/FunctionalTensorWrapper.h) looks like any other to autograd. Under it lies a plain tensor
// that is never written: a write replaces it, and views of the same memory follow when they are next read.
#pragma once

#include <ATen/FunctionalTensorWrapper.h>
#include <c10/core/AutogradState.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "runtime/capture/interpose.h"

namespace plumbline::partition {

/// A leaf on `tensor`'s memory and with its wish for a gradient; `tensor` itself will not be written.
inline at::Tensor functional_leaf(const at::Tensor& tensor) {
  at::Tensor leaf = at::functionalization::impl::to_functional_tensor(tensor.detach());
  leaf.unsafeGetTensorImpl()->set_requires_grad(tensor.requires_grad());
  return leaf;
}

/// The plain tensor under a functional one, with all that was written to it; another tensor as it is. To be called
/// inside a FunctionalRun, since catching up takes operator calls.
inline at::Tensor plain(const at::Tensor& tensor) {
  if (!tensor.defined() || !at::functionalization::impl::isFunctionalTensor(tensor)) return tensor;
  at::functionalization::impl::sync(tensor);
  return at::functionalization::impl::from_functional_tensor(tensor);
}

/// For as long as it lives, this thread's operator calls are differentiated, then functionalised, then sent to
/// `below`; the backward runs on this thread, whatever device its tensors are on.
class FunctionalRun {
 public:
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
  /// view, and not view_copy: the values below share memory as the values above do.
  const at::functionalization::impl::FunctionalizationReapplyViewsGuard views_{true};
  const capture::InterposerScope below_;
  const c10::impl::IncludeDispatchKeyGuard functionalize_;
};

}  // namespace plumbline::partition
