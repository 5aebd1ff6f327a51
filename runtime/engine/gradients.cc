#include "runtime/engine/gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <c10/core/Layout.h>
#include <c10/core/ScalarType.h>
#include <c10/util/StringUtil.h>

#include <utility>

#include "runtime/error.h"
#include "runtime/graph/graph.h"

namespace plumbline::engine {
namespace {

bool owns_memory(const at::Tensor& grad) { return grad.storage().use_count() == 1; }

/// Whether `more` can be added to `sum` in place, and no other tensor would change. Precondition: equal sizes.
bool takes_in_place(const at::Tensor& sum, const at::Tensor& more) {
  return owns_memory(sum) && sum.is_non_overlapping_and_dense() && !sum.is_inference() &&
         c10::promoteTypes(sum.scalar_type(), more.scalar_type()) == sum.scalar_type() && sum.device() == more.device();
}

/// A step gives its gradients the sizes of their leaves, so this is known before it begins.
void require_fit(const std::string& name, const at::Tensor& leaf) {
  require_dense(name, leaf.grad());
  if (!leaf.grad().defined() || leaf.grad().sizes() == leaf.sizes()) return;
  throw InputError("engine: the .grad of '" + name + "' is " + graph::describe(leaf.grad()) + ", its tensor is " +
                   graph::describe(leaf) + "; give it the sizes of its tensor, or reset it");
}

}  // namespace

void require_dense(const std::string& name, const at::Tensor& grad) {
  if (!grad.defined() || grad.layout() == at::kStrided) return;
  throw InputError("engine: the gradient of '" + name + "' has the layout " + c10::str(grad.layout()) +
                   "; a step adds up dense gradients (Strided) only: make embeddings without sparse gradients");
}

GradientStash::GradientStash(const std::map<int, split::StageState>& states) {
  for (const auto& [stage, state] : states)
    for (const auto& [name, parameter] : state.parameters) require_fit(name, parameter);
  for (const auto& [stage, state] : states)
    for (const auto& [name, parameter] : state.parameters) move_aside(parameter);
}

GradientStash::~GradientStash() {
  for (Entry& entry : entries_) entry.leaf.mutable_grad() = std::move(entry.before);
}

void GradientStash::add(const std::string& name, const at::Tensor& leaf) {
  if (known_.empty())
    for (const Entry& entry : entries_) known_.insert(entry.leaf.unsafeGetTensorImpl());
  // A replicated input comes once for each micro-batch.
  if (!known_.insert(leaf.unsafeGetTensorImpl()).second) return;
  require_fit(name, leaf);
  move_aside(leaf);
}

void GradientStash::move_aside(const at::Tensor& leaf) {
  entries_.push_back({leaf, std::exchange(leaf.mutable_grad(), at::Tensor())});
}

void GradientStash::add_back() {
  const c10::NoGradGuard no_grad;
  // What can fail comes first, and changes the step's gradients only. Earlier gradients may belong to other code.
  for (Entry& entry : entries_) {
    at::Tensor& grad = entry.leaf.mutable_grad();
    if (!entry.before.defined() || !grad.defined()) continue;
    entry.is_added = !takes_in_place(entry.before, grad);
    if (entry.is_added) grad = at::add(entry.before, grad);
  }
  for (Entry& entry : entries_) {
    if (!entry.before.defined() || entry.is_added) continue;
    at::Tensor& grad = entry.leaf.mutable_grad();
    if (grad.defined()) entry.before.add_(grad);
    grad = std::move(entry.before);
  }
  entries_.clear();
}

void separate_gradients(const split::StageState& state) {
  const c10::NoGradGuard no_grad;
  for (const auto& [name, parameter] : state.parameters) {
    at::Tensor& grad = parameter.mutable_grad();
    require_dense(name, grad);
    if (grad.defined() && !owns_memory(grad)) grad = grad.clone();
  }
}

void divide_gradients(const std::map<int, split::StageState>& states, double divisor) {
  const c10::NoGradGuard no_grad;
  for (const auto& [stage, state] : states)
    for (const auto& [name, parameter] : state.parameters)
      if (at::Tensor& grad = parameter.mutable_grad(); grad.defined()) grad.div_(divisor);
}

}  // namespace plumbline::engine
