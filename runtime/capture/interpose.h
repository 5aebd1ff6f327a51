// Interposition: every operator call of a thread passes through an Interposer, which may inspect and change the call.
//
// An interposer is called below Autograd and ADInplaceOrView and above the kernels. A forward therefore arrives as the
// operators that autograd differentiates (composite ones in their parts: linear as t and addmm), and a backward as the
// operators that its formulas call, including the in-place add that accumulates a gradient. The backward of CPU tensors
// runs on the calling thread. Version counters, views and the autograd graph are handled above and stay correct.
//
// The dispatch key is Fake, just above BackendSelect (so that factories arrive too), for which LibTorch has no
// fallback; the registration is in registrations.cc.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace plumbline::capture {

class Interposer {
 public:
  virtual ~Interposer() = default;

  /// Replaces one call of `op`. On entry the arguments are the last op.schema().arguments().size() entries of the
  /// stack; on return the results must be in their place, as after `op.callBoxed(stack)`. Operators called inside, and
  /// the operators that they call, are neither interposed nor recorded by autograd. An argument that `op` writes
  /// (alias_info()->isWrite(), and the running statistics of native_batch_norm, whose schema does not declare the
  /// write) must not be replaced by a copy. Exceptions reach the caller of the operator.
  virtual void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) = 0;
};

/// Sends the operator calls of this thread to `interposer`, which must outlive the scope. Scopes nest: only the
/// innermost interposer is called. Other threads are not affected, even if they take over this thread's dispatch state
/// (at::ThreadLocalStateGuard).
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

/// Calls visit(tensor) for each defined tensor in `value`, an argument or a result of a call.
template <class Visit>
void for_each_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) visit(value.toTensor());
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) for_each_tensor(element, visit);
  }
}

/// Whether a call writes the argument, by its declaration; of a result: whether it is an argument that was written.
inline bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

/// Whether the result shows the memory of an argument that the call does not write, by its declaration.
inline bool is_view(const c10::Argument& result) { return result.alias_info() != nullptr && !is_written(result); }

namespace detail {

inline constexpr c10::DispatchKey kInterposerKey = c10::DispatchKey::Fake;

/// The fallback of kInterposerKey.
void interpose(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

}  // namespace detail
}  // namespace plumbline::capture
