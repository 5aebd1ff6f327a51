#include "runtime/engine/gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/div.h>

#include <utility>

namespace plumbline::engine {
namespace {

bool owns_memory(const at::Tensor& grad) { return grad.storage().use_count() == 1; }

template <class Visit>
void for_each_parameter(const std::map<int, split::StageState>& states, Visit&& visit) {
  for (const auto& [stage, state] : states)
    for (const auto& [name, tensor] : state.parameters) visit(tensor);
}

}  // namespace

GradientStash::GradientStash(const std::map<int, split::StageState>& states) {
  for_each_parameter(states, [&](const at::Tensor& parameter) {
    entries_.push_back({parameter, std::move(parameter.mutable_grad())});
    parameter.mutable_grad() = at::Tensor();
  });
}

GradientStash::~GradientStash() {
  for (Entry& entry : entries_) entry.parameter.mutable_grad() = std::move(entry.before);
}

void GradientStash::add_back() {
  const c10::NoGradGuard no_grad;
  for (Entry& entry : entries_) {
    if (!entry.before.defined()) continue;
    at::Tensor& grad = entry.parameter.mutable_grad();
    // Earlier gradients may belong to other code.
    if (grad.defined() && owns_memory(entry.before))
      entry.before.add_(grad);
    else if (grad.defined())
      entry.before = at::add(entry.before, grad);
    grad = std::move(entry.before);
  }
  entries_.clear();
}

void separate_gradients(const split::StageState& state) {
  const c10::NoGradGuard no_grad;
  for (const auto& [name, parameter] : state.parameters) {
    at::Tensor& grad = parameter.mutable_grad();
    if (grad.defined() && !owns_memory(grad)) grad = grad.clone();
  }
}

void divide_gradients(const std::map<int, split::StageState>& states, double divisor) {
  const c10::NoGradGuard no_grad;
  for_each_parameter(states, [&](const at::Tensor& parameter) {
    at::Tensor& grad = parameter.mutable_grad();
    if (grad.defined()) grad.div_(divisor);
  });
}

}  // namespace plumbline::engine
