// stash(), pop() and SkipForward: the forward of a skippable module as a coroutine that yields its stashes and pops.
//
//   plumbline::SkipForward<> forward(at::Tensor x) {
//     co_yield plumbline::stash("1to3", x);
//     const at::Tensor carried = co_yield plumbline::pop("2to3");   // undefined: None was stashed
//     co_return f(x, carried);
//   }
//
// The interface of the generators in torchgpipe's skip/skippable.py, as a C++20 coroutine. A command executes when it
// is yielded, without suspending; yielding or awaiting anything else does not compile.
#pragma once

#include <ATen/core/Tensor.h>

#include <coroutine>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "runtime/error.h"

namespace plumbline::skip {

/// The command to stash `tensor` (undefined: None) under `name`. The commands are classes with constructors, not
/// aggregates: g++ 12 destroys an aggregate operand of co_yield twice.
class StashCommand {
 public:
  StashCommand(std::string name, at::Tensor tensor) : name_(std::move(name)), tensor_(std::move(tensor)) {}
  const std::string& name() const { return name_; }
  const at::Tensor& tensor() const { return tensor_; }

 private:
  std::string name_;
  at::Tensor tensor_;
};

/// The command to pop the tensor stashed under `name`; the value of its co_yield expression is the tensor.
class PopCommand {
 public:
  explicit PopCommand(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

inline StashCommand stash(std::string name, at::Tensor tensor) { return {std::move(name), std::move(tensor)}; }
inline PopCommand pop(std::string name) { return PopCommand(std::move(name)); }

/// Executes the commands of one forward. Exceptions are thrown from the co_yield expression.
class SkipHandler {
 public:
  virtual ~SkipHandler() = default;
  virtual void stash(const std::string& name, const at::Tensor& tensor) = 0;
  /// Returns the tensor; undefined if None was stashed.
  virtual at::Tensor pop(const std::string& name) = 0;
};

/// The forward of a skippable module, which returns its Output by co_return. The body does not start before run().
template <class Output = at::Tensor>
class [[nodiscard]] SkipForward {
 public:
  class promise_type;

  SkipForward(SkipForward&& other) noexcept : coroutine_(std::exchange(other.coroutine_, {})) {}
  SkipForward& operator=(SkipForward&&) = delete;
  ~SkipForward() {
    if (coroutine_) coroutine_.destroy();
  }

  /// Runs the forward to its end and returns its output; call once. Exceptions of the body propagate. Throws InputError
  /// if the body ends without co_return of an output. The arguments of the forward must still be alive, as for any
  /// coroutine that takes references.
  Output run(SkipHandler& handler) && {
    promise_type& promise = coroutine_.promise();
    promise.handler = &handler;
    coroutine_.resume();
    if (!promise.output) throw InputError("a forward that stashes or pops ended without co_return of its output");
    return std::move(*promise.output);
  }

 private:
  using Coroutine = std::coroutine_handle<promise_type>;
  explicit SkipForward(Coroutine coroutine) : coroutine_(coroutine) {}

  Coroutine coroutine_;
};

template <class Output>
class SkipForward<Output>::promise_type {
  struct Popped : std::suspend_never {
    at::Tensor tensor;
    at::Tensor await_resume() noexcept { return std::move(tensor); }
  };

 public:
  SkipForward get_return_object() { return SkipForward(Coroutine::from_promise(*this)); }
  std::suspend_always initial_suspend() noexcept { return {}; }
  std::suspend_always final_suspend() noexcept { return {}; }
  void return_value(Output value) { output.emplace(std::move(value)); }
  [[noreturn]] void unhandled_exception() { throw; }

  std::suspend_never yield_value(const StashCommand& command) {
    handler->stash(command.name(), command.tensor());
    return {};
  }
  Popped yield_value(const PopCommand& command) { return {{}, handler->pop(command.name())}; }
  template <class Other>
  void await_transform(Other&&) = delete;

  SkipHandler* handler = nullptr;
  std::optional<Output> output;
};

}  // namespace plumbline::skip

namespace plumbline {
using skip::pop;
using skip::SkipForward;
using skip::stash;
}  // namespace plumbline
