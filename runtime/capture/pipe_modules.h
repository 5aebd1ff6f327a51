// Modules for users of pipelines: a model together with its loss, and a sequence that is cut between its children. They
// correspond to LossWrapper, TrivialLossWrapper and PipeSequential of PyTorch's torch.distributed.pipelining (_IR.py),
// for module holders (torch::nn::Linear) and shared pointers to modules.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/capture/call.h"
#include "runtime/error.h"

namespace plumbline::capture {

namespace detail {

template <class Part>
concept HoldsModule = requires(Part& part) { static_cast<torch::nn::Module&>(*part.get()); };

}  // namespace detail

/// A model and its loss function as one module, with the children "module" and, if the loss function is a module,
/// "loss_fn" (the loss function may be any other callable). Derive a class and connect the two in its forward():
///
///   struct Regression : plumbline::capture::LossWrapper<torch::nn::Sequential, torch::nn::MSELoss> {
///     using LossWrapper::LossWrapper;
///     at::Tensor forward(const at::Tensor& x, const at::Tensor& target) {
///       return loss(plumbline::call(module, x), target);
///     }
///   };
template <class Model, class LossFunction>
class LossWrapper : public torch::nn::Module {
 public:
  LossWrapper(Model model, LossFunction loss_function) : module(std::move(model)), loss_fn(std::move(loss_function)) {
    register_module("module", module);
    if constexpr (detail::HoldsModule<LossFunction>) register_module("loss_fn", loss_fn);
  }

  /// The default forward, for a class without its own: throws InputError.
  template <class... Arguments>
  at::Tensor forward(Arguments&&...) {
    throw InputError(
        "LossWrapper: this class has no forward() of its own; write one that calls module and loss and returns the "
        "loss");
  }

  Model module;
  LossFunction loss_fn;

 protected:
  /// Applies the loss function; a module is called by call().
  template <class... Arguments>
  at::Tensor loss(Arguments&&... arguments) {
    if constexpr (detail::HoldsModule<LossFunction>)
      return call(loss_fn, std::forward<Arguments>(arguments)...);
    else
      return loss_fn(std::forward<Arguments>(arguments)...);
  }
};

/// Marks every TrivialLossWrapper, whatever its type arguments.
class TrivialLossMark {
 public:
  virtual ~TrivialLossMark() = default;
};

/// Computes loss_fn(module(x), targets). The only output is the loss, so find_loss() needs no LossMark.
template <class Model, class LossFunction>
class TrivialLossWrapper : public LossWrapper<Model, LossFunction>, public TrivialLossMark {
 public:
  using LossWrapper<Model, LossFunction>::LossWrapper;
  at::Tensor forward(const at::Tensor& x, const at::Tensor& targets) {
    return this->loss(call(this->module, x), targets);
  }
};
template <class Model, class LossFunction>
TrivialLossWrapper(Model, LossFunction) -> TrivialLossWrapper<Model, LossFunction>;

/// Whether `model` is a TrivialLossWrapper; used by find_loss().
inline bool is_trivial_loss_wrapper(const torch::nn::Module& model) {
  return dynamic_cast<const TrivialLossMark*>(&model) != nullptr;
}

/// A sequence of modules: children "0", "1", ..., each called by call() with the output of its predecessor. Every child
/// takes and returns one tensor; an empty sequence returns its input.
class SequenceImpl : public torch::nn::Module {
 public:
  template <detail::HoldsModule... Children>
  explicit SequenceImpl(Children... children) {
    (push_back(std::move(children)), ...);
  }

  template <detail::HoldsModule Child>
  void push_back(Child child) {
    std::shared_ptr<torch::nn::Module> module;
    if constexpr (requires { child.ptr(); })
      module = child.ptr();
    else
      module = child;
    add(std::move(module), [child](const at::Tensor& x) mutable { return call(child, x); });
  }

  size_t size() const { return forwards_.size(); }

  at::Tensor forward(at::Tensor x) {
    for (size_t i = 0; i < forwards_.size(); ++i) {
      if (i > 0) between_children();
      x = forwards_[i](x);
    }
    return x;
  }

 protected:
  using Forward = std::function<at::Tensor(const at::Tensor&)>;

  virtual void between_children() {}

  void add(std::shared_ptr<torch::nn::Module> module, Forward forward) {
    register_module(std::to_string(forwards_.size()), std::move(module));
    forwards_.push_back(std::move(forward));
  }

 private:
  std::vector<Forward> forwards_;
};
TORCH_MODULE(Sequence);

/// A sequence of modules, each of which is a stage: forward calls pipe_split() between two children.
class PipeSequentialImpl : public SequenceImpl {
 public:
  using SequenceImpl::SequenceImpl;

  /// Makes a sequence of the children of a torch::nn::Sequential and shares them with it.
  template <class Sequential>
  static std::shared_ptr<PipeSequentialImpl> from_sequential(Sequential& sequential) {
    auto pipe = std::make_shared<PipeSequentialImpl>();
    for (auto& child : *sequential)
      pipe->add(child.ptr(), [child](const at::Tensor& x) mutable {
        const detail::ModuleCallScope scope(*child.ptr());
        return child.template forward<at::Tensor>(x);
      });
    return pipe;
  }

 private:
  void between_children() override { pipe_split(); }
};
TORCH_MODULE(PipeSequential);

}  // namespace plumbline::capture

namespace plumbline {
using capture::Sequence;
using capture::SequenceImpl;
}  // namespace plumbline
