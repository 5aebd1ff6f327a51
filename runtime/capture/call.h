// call(): the function by which a module calls its children, so that observers learn which module runs.
//
// The dispatcher sees operators, not modules. A forward written as
//
//   at::Tensor forward(at::Tensor x) { return plumbline::call(fc2_, plumbline::call(fc1_, x)); }
//
// runs exactly as `fc2_->forward(fc1_->forward(x))` does, and notifies the observer of this thread (a capture, an
// oracle) when fc1 and fc2 are entered and left. The observer looks up names in the root module's registry, so that
// they equal Python's.
#pragma once

#include <utility>

namespace torch::nn {
class Module;
}

namespace plumbline::capture {

/// Notified of modules entered and left through call() on its thread. An exception of enter() reaches the caller of
/// call(), and leave() is not called for that module; leave() must not throw.
class ModuleObserver {
 public:
  virtual ~ModuleObserver() = default;
  virtual void enter(const torch::nn::Module& module) = 0;
  virtual void leave(const torch::nn::Module& module) = 0;
};

/// Installs an observer on this thread for the lifetime of the scope. Scopes nest: only the innermost observer is
/// notified; a null observer silences the outer ones. `observer` must outlive the scope.
class ModuleObserverScope {
 public:
  explicit ModuleObserverScope(ModuleObserver* observer) noexcept;
  ~ModuleObserverScope();
  ModuleObserverScope(const ModuleObserverScope&) = delete;
  ModuleObserverScope& operator=(const ModuleObserverScope&) = delete;

 private:
  ModuleObserver* outer_;
};

namespace detail {

/// Notifies the observer of entry and, even if forward throws, of exit.
class ModuleCallScope {
 public:
  explicit ModuleCallScope(const torch::nn::Module& module);
  ~ModuleCallScope();
  ModuleCallScope(const ModuleCallScope&) = delete;
  ModuleCallScope& operator=(const ModuleCallScope&) = delete;

 private:
  const torch::nn::Module& module_;
};

}  // namespace detail

/// Calls `child->forward(arguments...)`. `child` is a module holder (torch::nn::Linear) or a shared_ptr to a module.
template <class Child, class... Arguments>
decltype(auto) call(Child& child, Arguments&&... arguments) {
  auto& module = *child.get();
  const detail::ModuleCallScope scope(static_cast<const torch::nn::Module&>(module));
  return module.forward(std::forward<Arguments>(arguments)...);
}

/// Marks the end of a stage in forward: a capture records a split marker. Outside a capture it does nothing.
void pipe_split();

}  // namespace plumbline::capture

namespace plumbline {
using capture::call;
using capture::pipe_split;
}  // namespace plumbline
