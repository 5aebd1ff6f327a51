// The dispatcher registrations of plumbline; this file must be linked exactly once into a process (a second boxed
// fallback for one key is refused by LibTorch at start-up).
//
// DeferredInit sits above Autograd and Autocast and has no other user in LibTorch itself. Each call that the model
// makes arrives here whole; the guard excludes the call's inner calls.
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "runtime/capture/call.h"
#include "runtime/capture/interpose.h"
#include "runtime/capture/meta/meta_device.h"
#include "runtime/capture/recorder.h"

namespace plumbline::capture {
namespace {

constexpr c10::DispatchKey kKey = c10::DispatchKey::DeferredInit;

thread_local Recorder* recorder = nullptr;

void record(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard inner(kKey);
  if (!recorder) return op.callBoxed(stack);
  recorder->before(op, *stack);
  try {
    if (!detail::stand_in_for_composition(op, stack)) op.callBoxed(stack);
  } catch (const detail::NoMetaPath& error) {
    recorder->refuse(error.what());
  }
  recorder->after(op, *stack);
}

void do_nothing() {}

}  // namespace

TORCH_LIBRARY(plumbline, library) { library.def("pipe_split() -> ()", &do_nothing); }

TORCH_LIBRARY_IMPL(_, DeferredInit, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&record>()); }

TORCH_LIBRARY_IMPL(_, Fake, library) {
  static_assert(detail::kInterposerKey == c10::DispatchKey::Fake);
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&detail::interpose>());
}

RecordingScope::RecordingScope(Recorder& target) {
  PLUMBLINE_CHECK(recorder == nullptr, "a capture inside a capture");
  recorder = &target;
  c10::impl::tls_set_dispatch_key_included(kKey, true);
}

RecordingScope::~RecordingScope() {
  c10::impl::tls_set_dispatch_key_included(kKey, false);
  recorder = nullptr;
}

void pipe_split() {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("plumbline::pipe_split", "").typed<void()>();
  op.call();
}

}  // namespace plumbline::capture
