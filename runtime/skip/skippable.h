// Skippable: a module whose forward stashes tensors for later modules, or pops tensors that earlier modules stashed.
//
//   struct Layer1 : torch::nn::Module {
//     inline static const plumbline::SkipNames skips{.stash = {"1to3"}};
//     plumbline::SkipForward<> forward(at::Tensor x) {
//       co_yield plumbline::stash("1to3", x);
//       co_return f1(x);
//     }
//   };
//   struct Layer3 : torch::nn::Module {
//     inline static const plumbline::SkipNames skips{.pop = {"1to3"}};
//     plumbline::SkipForward<> forward(at::Tensor x) {
//       const at::Tensor carried = co_yield plumbline::pop("1to3");
//       co_return f3(x) + carried;
//     }
//   };
//   plumbline::Sequence model(plumbline::skippable<Layer1>(), Layer2(), plumbline::skippable<Layer3>());
//
// The modules in between do not handle the tensor. In a split model the tensor is sent directly from the stage that
// computes it to the stage that pops it, under every schedule (runtime/split).
//
// Behaviour and messages follow torchgpipe's skip/skippable.py (PyTorch's distributed/pipeline/sync/skip); names in a
// message are sorted. Tensors to pop are fetched before the body runs; stashed tensors become visible after it. Cases
// that torchgpipe leaves open throw InputError: a name stashed or popped twice in one forward, and isolating an
// undeclared name.
#pragma once

#include <torch/nn/module.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/skip/skip_forward.h"
#include "runtime/skip/skip_tracker.h"

namespace plumbline::skip {

/// The names that a module declares to stash and pop.
struct SkipNames {
  std::vector<std::string> stash = {};
  std::vector<std::string> pop = {};
};

/// The common base of skippable modules, independent of the body. Names are local to the module; key() adds the
/// namespace.
class SkippableBase {
 public:
  virtual ~SkippableBase() = default;

  const std::set<std::string>& stashable() const { return stashable_; }
  const std::set<std::string>& poppable() const { return poppable_; }
  /// The key of a name: its namespace after isolation, otherwise SkipNamespace::common().
  SkipKey key(const std::string& name) const;

 protected:
  explicit SkippableBase(const SkipNames& names);

  /// Moves the names in `only` to `ns`. Throws InputError with the declared names, and moves none, if one is not
  /// declared.
  void isolate_names(SkipNamespace ns, const std::vector<std::string>& only);
  /// Moves all declared names to `ns`.
  void isolate_all(SkipNamespace ns);

  /// The stashes and pops of one forward: constructed before the body runs, executes its commands, finished after it.
  class Exchange : public SkipHandler {
   public:
    /// Takes the tensors of all poppable names from current_skip_tracker(). Throws InputError: "'a' has not been
    /// stashed".
    explicit Exchange(const SkippableBase& module);
    /// stash() and pop() throw InputError for a name that is not declared or was already stashed or popped.
    void stash(const std::string& name, const at::Tensor& tensor) override;
    at::Tensor pop(const std::string& name) override;
    /// Passes the stashed tensors to current_skip_tracker(). Throws InputError, and passes none, if a declared name was
    /// not stashed or not popped.
    void finish();

   private:
    const SkippableBase& module_;
    std::map<std::string, at::Tensor> stashed_;
    std::map<std::string, at::Tensor> to_pop_;
  };

 private:
  std::set<std::string> stashable_, poppable_;
  std::map<std::string, SkipNamespace> namespaces_;
};

namespace detail {

template <class Output>
struct ForwardOutput {
  using type = Output;
  static Output run(Output output, SkipHandler&) { return output; }
};
template <class Output>
struct ForwardOutput<SkipForward<Output>> {
  using type = Output;
  static Output run(SkipForward<Output> forward, SkipHandler& handler) { return std::move(forward).run(handler); }
};

/// The demangled class name of the body, with its namespaces.
std::string body_name(const std::type_info& body);

/// Derives from `Body` and replaces its forward: same arguments, but the output is returned directly, not as
/// SkipForward.
template <class Body, class Forward>
class WithForward;

template <class Body, class Owner, class Result, class... Arguments>
class WithForward<Body, Result (Owner::*)(Arguments...)> : public Body, public SkippableBase {
 public:
  template <class... Made>
  explicit WithForward(Made&&... made) : Body(std::forward<Made>(made)...), SkippableBase(this->skips) {}

  typename ForwardOutput<Result>::type forward(Arguments... arguments) {
    Exchange exchange(*this);
    auto output = ForwardOutput<Result>::run(Body::forward(std::forward<Arguments>(arguments)...), exchange);
    exchange.finish();
    return output;
  }
};

template <class Body, class Owner, class Result, class... Arguments>
class WithForward<Body, Result (Owner::*)(Arguments...) const>
    : public WithForward<Body, Result (Owner::*)(Arguments...)> {
  using WithForward<Body, Result (Owner::*)(Arguments...)>::WithForward;
};

}  // namespace detail

/// A module derived from `Body`, which must have a forward that is not overloaded and a SkipNames member `skips`
/// (static or not). Parameters, buffers and children keep their names.
template <class Body>
class Skippable : public detail::WithForward<Body, decltype(&Body::forward)> {
 public:
  using detail::WithForward<Body, decltype(&Body::forward)>::WithForward;

  /// Moves all declared names, or the names in `only`, to `ns` and returns this module, which a shared_ptr must own.
  /// Throws InputError for a name that the module does not declare.
  std::shared_ptr<Skippable> isolate(SkipNamespace ns) {
    this->isolate_all(ns);
    return std::static_pointer_cast<Skippable>(this->shared_from_this());
  }
  std::shared_ptr<Skippable> isolate(SkipNamespace ns, const std::vector<std::string>& only) {
    this->isolate_names(ns, only);
    return std::static_pointer_cast<Skippable>(this->shared_from_this());
  }

  /// Prints "@skippable(Layer1)".
  void pretty_print(std::ostream& stream) const override {
    stream << "@skippable(";
    if constexpr (std::is_same_v<decltype(&Body::pretty_print), decltype(&torch::nn::Module::pretty_print)>)
      stream << detail::body_name(typeid(Body));
    else
      Body::pretty_print(stream);
    stream << ")";
  }
};

/// Makes a Skippable<Body>; `arguments` are passed to Body's constructor.
template <class Body, class... Arguments>
std::shared_ptr<Skippable<Body>> skippable(Arguments&&... arguments) {
  return std::make_shared<Skippable<Body>>(std::forward<Arguments>(arguments)...);
}

}  // namespace plumbline::skip

namespace plumbline {
using skip::SkipNames;
using skip::skippable;
}  // namespace plumbline
