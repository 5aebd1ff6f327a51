#include "runtime/capture/call.h"

namespace plumbline::capture {
namespace {

thread_local ModuleObserver* current_observer = nullptr;

}  // namespace

ModuleObserverScope::ModuleObserverScope(ModuleObserver* observer) noexcept : outer_(current_observer) {
  current_observer = observer;
}

ModuleObserverScope::~ModuleObserverScope() { current_observer = outer_; }

namespace detail {

ModuleCallScope::ModuleCallScope(const torch::nn::Module& module) : module_(module) {
  if (current_observer) current_observer->enter(module_);
}

ModuleCallScope::~ModuleCallScope() {
  if (current_observer) current_observer->leave(module_);
}

}  // namespace detail
}  // namespace plumbline::capture
