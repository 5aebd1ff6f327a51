#include "reference/oracle/optimizer.h"

#include <ATen/ops/scalar_tensor.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <cmath>

#include "runtime/error.h"

namespace plumbline::reference {
namespace {

using torch::optim::AdamWParamState;
using torch::optim::OptimizerParamState;
using torch::optim::SGDParamState;

std::unique_ptr<torch::optim::Optimizer> make(const OptimizerSpec& spec, const NamedTensors& parameters) {
  std::vector<at::Tensor> all;
  for (const auto& [name, parameter] : parameters) all.push_back(parameter);
  if (spec.kind == OptimizerKind::Sgd) {
    auto sgd = std::make_unique<torch::optim::SGD>(
        all,
        torch::optim::SGDOptions(std::abs(spec.learning_rate)).momentum(spec.momentum).weight_decay(spec.weight_decay));
    // SGD's constructor refuses the negative rate of a proof of exactness, whose updates add.
    static_cast<torch::optim::SGDOptions&>(sgd->param_groups().at(0).options()).lr(spec.learning_rate);
    return sgd;
  }
  return std::make_unique<torch::optim::AdamW>(all, torch::optim::AdamWOptions(spec.learning_rate)
                                                        .betas({spec.beta1, spec.beta2})
                                                        .eps(spec.epsilon)
                                                        .weight_decay(spec.weight_decay));
}

/// The state of `parameter` in `begin`; null if it has none.
std::unique_ptr<OptimizerParamState> state_from(const OptimizerState& begin, const std::string& name,
                                                const at::Tensor& parameter, bool is_sgd) {
  const auto find = [&](const char* entry) {
    const auto found = begin.find(name + "/" + entry);
    return found == begin.end() ? at::Tensor() : found->second;
  };
  const auto own = [&](const char* entry) {
    const at::Tensor saved = find(entry);
    PLUMBLINE_CHECK(saved.defined(), "optimizer: the state of " + name + " has no " + entry);
    return saved.to(parameter.device(), parameter.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  };
  if (is_sgd) {
    if (!find("momentum_buffer").defined()) return nullptr;
    auto state = std::make_unique<SGDParamState>();
    state->momentum_buffer(own("momentum_buffer"));
    return state;
  }
  const at::Tensor step = find("step");
  if (!step.defined()) return nullptr;
  auto state = std::make_unique<AdamWParamState>();
  state->step(step.item<int64_t>());
  state->exp_avg(own("exp_avg"));
  state->exp_avg_sq(own("exp_avg_sq"));
  return state;
}

}  // namespace

CaseOptimizer::CaseOptimizer(const OptimizerSpec& spec, NamedTensors parameters, const OptimizerState& begin)
    : parameters_(std::move(parameters)),
      is_sgd_(spec.kind == OptimizerKind::Sgd),
      optimizer_(make(spec, parameters_)) {
  for (const auto& [name, parameter] : parameters_)
    if (auto state = state_from(begin, name, parameter, is_sgd_))
      optimizer_->state()[parameter.unsafeGetTensorImpl()] = std::move(state);
}

CaseOptimizer::~CaseOptimizer() = default;

void CaseOptimizer::step() { optimizer_->step(); }

NamedTensors CaseOptimizer::state() const {
  NamedTensors out;
  for (const auto& [name, parameter] : parameters_) {
    const auto found = optimizer_->state().find(parameter.unsafeGetTensorImpl());
    if (found == optimizer_->state().end()) continue;
    const auto add = [&, prefix = name + "/"](const char* entry, const at::Tensor& tensor) {
      if (tensor.defined()) out.emplace_back(prefix + entry, tensor);
    };
    if (is_sgd_) {
      add("momentum_buffer", static_cast<const SGDParamState&>(*found->second).momentum_buffer());
      continue;
    }
    const auto& state = static_cast<const AdamWParamState&>(*found->second);
    add("exp_avg", state.exp_avg());
    add("exp_avg_sq", state.exp_avg_sq());
    add("step", at::scalar_tensor(state.step(), at::kLong));
  }
  return out;
}

}  // namespace plumbline::reference
