// Interposition: every operator call of a thread passes through an object that may look at it and change it.
//
// It sits below Autograd and ADInplaceOrView and above the kernels, so a forward arrives as the operators that autograd
// differentiates (composite ones in their parts: linear as t and addmm), and a backward arrives as the operators that
// its formulas call, the in-place add of a gradient that accumulates included. Backward of CPU tensors runs on the
// thread that called it. Version counters, views and the autograd graph are handled above and stay right.
//
// The place is the dispatch key Fake, just above BackendSelect (so that factories arrive too) and without a fallback of
// LibTorch's own; the registration is in registrations.cc.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace plumbline::capture {

class Interposer {
 public:
  virtual ~Interposer() = default;

  /// Stands in for one call of `op`. On entry the arguments are the last op.schema().arguments().size() entries of the
  /// stack, one for each; on return the results must be there in their place. `op.callBoxed(stack)` does just that.
  /// Operators that are called in here, and what they call, are not interposed and not recorded by autograd.
  /// An argument that op writes (alias_info()->isWrite(), and the running statistics of native_batch_norm, whose schema
  /// does not say so) must not be replaced by a copy. What it throws passes through to the caller.
  virtual void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) = 0;
};

/// Sends the operator calls of this thread to `interposer` for as long as it lives. Scopes nest: the innermost is
/// called, alone, and the outer one again after it. Other threads are not affected, even where they take over this
/// thread's dispatch state (at::ThreadLocalStateGuard).
class InterposerScope {
 public:
  explicit InterposerScope(Interposer& interposer) noexcept;
  ~InterposerScope();
  InterposerScope(const InterposerScope&) = delete;
  InterposerScope& operator=(const InterposerScope&) = delete;

 private:
  Interposer* outer_;
  const c10::impl::IncludeDispatchKeyGuard included_;
};

namespace detail {

inline constexpr c10::DispatchKey kInterposerKey = c10::DispatchKey::Fake;

/// The fallback of kInterposerKey.
void interpose(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

}  // namespace detail
}  // namespace plumbline::capture
