// Counting user hooks: those on parameters double the gradient, those on values between stages leave it unchanged.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/mul.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

namespace plumbline::reference {

class CountedHooks {
 public:
  /// A parameter that requires no gradient gets no hook.
  void add(const std::string& name, const at::Tensor& parameter) {
    if (!parameter.requires_grad()) return;
    parameter.register_hook([calls = counter(name)](const at::Tensor& grad) {
      ++*calls;
      return at::mul(grad, 2);
    });
  }

  /// Watches a value of one micro-batch; the values of all micro-batches are counted under one name.
  void watch(const std::string& name, const at::Tensor& value) {
    if (!value.requires_grad()) return;
    value.register_hook([calls = counter(name)](const at::Tensor&) { ++*calls; });
  }

  /// The number of calls of that name's hook since the last query.
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
