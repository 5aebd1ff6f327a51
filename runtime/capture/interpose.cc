#include "runtime/capture/interpose.h"

#include <ATen/core/LegacyTypeDispatch.h>

namespace plumbline::capture {
namespace {

thread_local Interposer* interposer = nullptr;

/// Whether the kernel that would run is a composition of other operators. Such a call arrives here when Autograd did
/// not decompose it, as in inference mode.
bool is_composite(const c10::OperatorHandle& op, c10::DispatchKeySet keys) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
         !op.hasKernelForDispatchKey(keys.highestPriorityTypeId());
}

}  // namespace

InterposerScope::InterposerScope(Interposer& target) noexcept : outer_(interposer), included_(detail::kInterposerKey) {
  interposer = &target;
}

InterposerScope::~InterposerScope() { interposer = outer_; }

void detail::interpose(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const c10::DispatchKeySet below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kInterposerKey);
  // A composition runs with the key still set, so that its parts arrive here.
  if (!interposer || is_composite(op, below)) return op.redispatchBoxed(below, stack);
  const c10::impl::ExcludeDispatchKeyGuard inner(kInterposerKey);
  // Autograd's kernels have left the key set before they arrive here, but factories and operators without a derivative
  // formula have not: without this guard, autograd would record the interposer's calls for those alone.
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  interposer->call(op, stack);
}

}  // namespace plumbline::capture
