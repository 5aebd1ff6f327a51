#include "reference/oracle/case_run.h"

#include <ATen/ops/scalar_tensor.h>

#include <cmath>
#include <optional>

#include "reference/loss.h"
#include "runtime/graph/equal_bits.h"

namespace plumbline::reference {
namespace {

constexpr std::string_view kDiffers = " (a copy that differs)";

/// Records each name once: copies of a shared parameter are equal, so the first one suffices. A copy that differs, or
/// that lacks a tensor of the others, is also recorded, under a name that no correct run has.
void record(Results& results, ResultKind kind, int step, const NamedTensors& tensors) {
  const auto key_of = [&](const std::string& name) { return ResultKey{step, kind, -1, -1, name}; };
  std::vector<bool> is_first(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, tensor] = tensors[i];
    is_first[i] = tensor.defined() && !results.contains(to_string(key_of(name)));
    if (is_first[i]) put(results, key_of(name), tensor);
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, tensor] = tensors[i];
    if (is_first[i]) continue;
    const auto first = results.find(to_string(key_of(name)));
    if (first == results.end() || (tensor.defined() && graph::have_equal_bits(first->second, tensor))) continue;
    put(results, key_of(name + (tensor.defined() ? std::string(kDiffers) : " (missing in a copy)")),
        tensor.defined() ? tensor : first->second);
  }
}

/// Replaces each gradient; several may share one memory (sum_of.h), so `change` works on a clone, with the operators in
/// place whose rounding of a number the contract states.
template <class Change>
void change_gradients(const CaseSubject& subject, Change&& change) {
  const c10::NoGradGuard no_grad;
  for (const auto& [name, parameter] : subject.parameters())
    if (at::Tensor& grad = parameter.mutable_grad(); grad.defined()) {
      at::Tensor own = grad.clone();
      change(own);
      grad = own;
    }
}

/// The steps of an Optimizer step that precede the update: unscaling and clipping. False if the step is to be
/// skipped.
bool prepare_gradients(const Case& c, int step, const CaseSubject& subject, Results& results) {
  const OptimizerSpec& spec = c.optimizer;
  if (spec.skip_nonfinite && !std::isfinite(subject.gradient_norm(NormKind::Infinity))) return false;
  if (spec.loss_scale != 1.0) change_gradients(subject, [&](at::Tensor& grad) { grad.div_(spec.loss_scale); });
  if (spec.clip_norm == 0.0) return true;
  const double norm = subject.gradient_norm(spec.norm);
  put(results, {step, ResultKind::GradNorm, -1, -1, "norm"}, at::scalar_tensor(norm, at::kDouble));
  const double factor = spec.clip_norm / (norm + spec.clip_epsilon);
  if (factor < 1.0) change_gradients(subject, [&](at::Tensor& grad) { grad.mul_(factor); });
  return true;
}

void record_gradients(const CaseSubject& subject, int step, Results& results) {
  NamedTensors grads;
  for (const auto& [name, parameter] : subject.parameters()) grads.emplace_back(name, parameter.grad());
  record(results, ResultKind::Grad, step, grads);
}

}  // namespace

void CaseSubject::update(CaseOptimizer& optimizer) { optimizer.step(); }

bool is_differing_copy(std::string_view key) { return key.ends_with(kDiffers); }

void run_case(const Case& c, uint64_t seed, CaseSubject& subject, Results& results, const SavedState& begin) {
  std::optional<CaseOptimizer> optimizer;
  int batches = first_batch(c);
  for (int step = 0; step < static_cast<int>(c.steps.size()); ++step) {
    const Step& todo = c.steps[step];
    const auto next_batch = [&] { return models::make_batch(c, todo, seed, batches++); };
    switch (todo.kind) {
      case StepKind::Train:
        subject.train(step, next_batch());
        if (keeps_details(c)) record_gradients(subject, step, results);
        break;
      case StepKind::Read:
        record_gradients(subject, step, results);
        break;
      case StepKind::Eval:
        subject.evaluate(step, next_batch());
        break;
      case StepKind::ZeroGrad:
        subject.zero_grad();
        break;
      case StepKind::Optimizer:
        if (!optimizer) optimizer.emplace(c.optimizer, subject.parameters(), begin.optimizer);
        if (prepare_gradients(c, step, subject, results)) subject.update(*optimizer);
        break;
      case StepKind::Freeze:
      case StepKind::Unfreeze:
        subject.set_trainable(todo.parameters, todo.kind == StepKind::Unfreeze);
        break;
    }
  }
  const int last = static_cast<int>(c.steps.size()) - 1;
  record(results, ResultKind::Buffer, last, subject.buffers());
  record(results, ResultKind::Param, last, subject.parameters());
  if (optimizer && c.saves_optimizer) record(results, ResultKind::OptimizerState, last, optimizer->state());
}

}  // namespace plumbline::reference
