// Hooks on parameters as a user has them: each doubles the gradient that it is given and counts how often it was
// called.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/mul.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

namespace plumbline {

class CountedHooks {
 public:
  /// A parameter that requires no gradient gets no hook.
  void add(const std::string& name, const at::Tensor& parameter) {
    if (!parameter.requires_grad()) return;
    const auto calls = std::make_shared<int64_t>(0);
    calls_[name] = calls;
    parameter.register_hook([calls](const at::Tensor& grad) {
      ++*calls;
      return at::mul(grad, 2);
    });
  }

  /// How often the hook of that name was called since this was last asked.
  int64_t take(const std::string& name) {
    const auto it = calls_.find(name);
    return it == calls_.end() ? 0 : std::exchange(*it->second, 0);
  }

 private:
  std::map<std::string, std::shared_ptr<int64_t>> calls_;
};

}  // namespace plumbline
