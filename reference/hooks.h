// Counting user hooks: hooks on parameters double the gradient, hooks on values between stages leave it unchanged.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/mul.h>

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

  /// The number of calls of the hooks under `name` since the previous take(); 0 for an unknown name. Resets the count.
  int64_t take(const std::string& name) {
    const auto it = calls_.find(name);
    return it == calls_.end() ? 0 : std::exchange(*it->second, 0);
  }

 private:
  std::shared_ptr<int64_t> counter(const std::string& name) {
    std::shared_ptr<int64_t>& calls = calls_[name];
    if (!calls) calls = std::make_shared<int64_t>(0);
    return calls;
  }

  std::map<std::string, std::shared_ptr<int64_t>> calls_;
};

}  // namespace plumbline::reference
