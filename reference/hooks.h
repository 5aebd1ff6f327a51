// Counting user hooks: hooks on parameters double the gradient, hooks on values between stages leave it unchanged, and
// hooks after the accumulation into a parameter keep .grad as they find it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/mul.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

namespace plumbline::reference {

/// The hooks stay on their tensors and may outlive this object. Counting is not synchronised: the hooks of one name
/// must run on one thread at a time, and not during take().
class CountedHooks {
 public:
  /// Registers the doubling hook on `parameter`; does nothing if it requires no gradient.
  void add(const std::string& name, const at::Tensor& parameter) {
    if (!parameter.requires_grad()) return;
    parameter.register_hook([calls = counter(name)](const at::Tensor& grad) {
      ++*calls;
      return at::mul(grad, 2);
    });
  }

  /// Registers a hook that only counts on `value`, a value of one micro-batch; does nothing if it requires no gradient.
  /// The values of all micro-batches are counted under one name.
  void watch(const std::string& name, const at::Tensor& value) {
    if (!value.requires_grad()) return;
    value.register_hook([calls = counter(name)](const at::Tensor&) { ++*calls; });
  }

  /// Registers a hook on `parameter` that is called after each accumulation into .grad; does nothing if it requires no
  /// gradient. A parameter has at most one such hook.
  void add_after(const std::string& name, const at::Tensor& parameter) {
    if (!parameter.requires_grad()) return;
    torch::autograd::impl::set_post_acc_grad_hooks(parameter,
                                                   std::make_unique<AfterAccumulation>(counter(name), seen(name)));
  }

  /// .grad as the latest call of the hook of add_after() found it since the previous take_seen(); undefined without
  /// one.
  at::Tensor take_seen(const std::string& name) { return std::exchange(*seen(name), at::Tensor()); }

  /// The number of calls of the hooks under `name` since the previous take(); 0 for an unknown name. Resets the count.
  int64_t take(const std::string& name) {
    const auto it = calls_.find(name);
    return it == calls_.end() ? 0 : std::exchange(*it->second, 0);
  }

 private:
  struct AfterAccumulation : torch::autograd::PostAccumulateGradHook {
    AfterAccumulation(std::shared_ptr<int64_t> counter, std::shared_ptr<at::Tensor> kept)
        : calls(std::move(counter)), grad(std::move(kept)) {}
    void operator()(const torch::autograd::Variable& parameter) override {
      ++*calls;
      *grad = parameter.grad().defined() ? parameter.grad().detach().clone() : at::Tensor();
    }
    std::shared_ptr<int64_t> calls;
    std::shared_ptr<at::Tensor> grad;
  };

  std::shared_ptr<at::Tensor> seen(const std::string& name) {
    std::shared_ptr<at::Tensor>& grad = seen_[name];
    if (!grad) grad = std::make_shared<at::Tensor>();
    return grad;
  }

  std::shared_ptr<int64_t> counter(const std::string& name) {
    std::shared_ptr<int64_t>& calls = calls_[name];
    if (!calls) calls = std::make_shared<int64_t>(0);
    return calls;
  }

  std::map<std::string, std::shared_ptr<int64_t>> calls_;
  std::map<std::string, std::shared_ptr<at::Tensor>> seen_;
};

}  // namespace plumbline::reference
