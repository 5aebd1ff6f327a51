// Mutants in the loss: its value, its target, its weights, and the division by the number of micro-batches.
#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "conformance/mutants/faults/elements_of.h"
#include "conformance/mutants/hooked_steps.h"
#include "conformance/mutants/mutants.h"
#include "conformance/mutants/options_mutant.h"
#include "conformance/mutants/same_bytes.h"
#include "reference/loss.h"

namespace plumbline::conformance {
namespace {

/// Computes the loss of a micro-batch instead of `right`. Copied for each rank, with the state that it captures.
using WrongLoss = std::function<at::Tensor(const engine::LossFunction& right, const std::vector<at::Tensor>& outputs,
                                           const Targets& targets)>;

Mutant loss(std::string name, std::string what, WrongLoss wrong, std::vector<Need> needs = {}) {
  return {std::move(name), std::move(what),
          [wrong = std::move(wrong)](const FaultSite& site) {
            Fault fault;
            fault.options = [site, wrong](engine::EngineOptions& options) {
              options.loss = [site, wrong, right = options.loss](const std::vector<at::Tensor>& outputs,
                                                                 const Targets& targets) mutable {
                const at::Tensor expected = right(outputs, targets);
                if (!expected.defined()) return expected;  // an evaluation without a target
                const at::Tensor value = wrong(right, outputs, targets);
                if (!same_bytes(value, expected)) site.happens();
                return value;
              };
            };
            return fault;
          },
          std::move(needs)};
}

/// Changes the local losses of the rank. `wrong` is copied for each rank, with the state that it captures.
Mutant local_loss(
    std::string name, std::string what,
    std::function<at::Tensor(const at::Tensor& made, const at::Tensor& right, const FaultSite& site)> wrong,
    std::vector<Need> needs = {need::training, need::local_losses}) {
  return {std::move(name), std::move(what),
          [wrong = std::move(wrong)](const FaultSite& site) {
            Fault fault;
            fault.options = [site, wrong](engine::EngineOptions& options) {
              options.local_loss = [site, wrong, right = options.local_loss](const at::Tensor& made) mutable {
                const at::Tensor expected = right(made), value = wrong(made, expected, site);
                if (!same_bytes(value, expected)) site.happens();
                return value;
              };
            };
            return fault;
          },
          std::move(needs)};
}

/// Scales what each training step adds to the gradients of parameters whose names begin with `prefix`.
Mutant step_scaled(std::string name, std::string what, std::function<double(const FaultSite&)> factor,
                   std::vector<Need> needs, std::string prefix = {}) {
  return {std::move(name), std::move(what),
          [factor = std::move(factor), prefix = std::move(prefix)](const FaultSite& site) {
            return step_fault({.train = [site, prefix, by = factor(site)](reference::CaseSubject& inner, int step,
                                                                          const models::Batch& batch) {
              std::vector<at::Tensor> before;
              for (const auto& [name, parameter] : inner.parameters())
                before.push_back(parameter.grad().defined() ? parameter.grad().clone() : at::Tensor());
              inner.train(step, batch);
              const reference::NamedTensors parameters = inner.parameters();
              if (before.empty()) before.resize(parameters.size());  // a rank builds its stages in the first step
              for (size_t i = 0; i < parameters.size(); ++i) {
                at::Tensor& grad = parameters[i].second.mutable_grad();
                if (!grad.defined() || by == 1 || !parameters[i].first.starts_with(prefix)) continue;
                const at::Tensor right = grad;
                grad = before[i].defined() ? at::add(before[i], at::mul(grad.sub(before[i]), by)) : at::mul(grad, by);
                if (!same_bytes(grad, right)) site.happens();
              }
            }});
          },
          std::move(needs)};
}

/// The divisor of the last training step also divides the losses of evaluations.
Fault divisor_outlives_its_step(const FaultSite& site) {
  struct Divisors {
    double trained = 0;     // of the last training step; 0: none yet
    double evaluation = 0;  // of the evaluation that runs; 0: none
  };
  const auto divisors = std::make_shared<Divisors>();
  Fault fault = step_fault({.train =
                                [site, divisors](reference::CaseSubject& inner, int step, const models::Batch& batch) {
                                  divisors->trained = reference::loss_divisor(site.of, batch.targets);
                                  inner.train(step, batch);
                                },
                            .evaluate =
                                [site, divisors](reference::CaseSubject& inner, int step, const models::Batch& batch) {
                                  divisors->evaluation = reference::loss_divisor(site.of, batch.targets);
                                  inner.evaluate(step, batch);
                                  divisors->evaluation = 0;
                                }});
  fault.options = [site, divisors](engine::EngineOptions& options) {
    options.loss = [site, divisors, right = options.loss](const std::vector<at::Tensor>& outputs,
                                                          const Targets& targets) {
      const at::Tensor loss = right(outputs, targets);
      if (!loss.defined() || divisors->trained == 0 || divisors->evaluation == 0) return loss;
      if (divisors->evaluation != divisors->trained) site.happens();
      return at::mul(loss, divisors->evaluation / divisors->trained);
    };
  };
  return fault;
}

/// What a training step adds to the gradients, multiplied by the rounded reciprocal instead of divided.
Fault multiplied_by_reciprocal(const FaultSite& site) {
  if (site.of.division != reference::Division::Engine) return {};
  Fault fault = step_fault({.train = [site](reference::CaseSubject& inner, int step, const models::Batch& batch) {
    std::map<const void*, at::Tensor> before;
    for (const auto& [name, parameter] : inner.parameters())
      before[parameter.unsafeGetTensorImpl()] = std::exchange(parameter.mutable_grad(), at::Tensor());
    inner.train(step, batch);
    for (const auto& [name, parameter] : inner.parameters()) {
      at::Tensor& grad = parameter.mutable_grad();
      if (grad.defined()) {
        const at::Tensor right = at::div(grad, site.microbatches());
        grad = at::mul(grad, 1.0 / site.microbatches());
        if (!same_bytes(grad, right)) site.happens();
      }
      const at::Tensor& earlier = before[parameter.unsafeGetTensorImpl()];
      if (earlier.defined()) grad = grad.defined() ? at::add(earlier, grad) : earlier;
    }
  }});
  fault.options = [](engine::EngineOptions& options) { options.divide_by_microbatches = false; };
  return fault;
}

}  // namespace

std::vector<Mutant> mutants_in_the_loss() {
  return {
      loss("loss-doubled", "The loss is twice what it should be.",
           [](const engine::LossFunction& right, const auto& outputs, const Targets& targets) {
             return at::mul(right(outputs, targets), 2);
           }),
      loss("loss-offset", "The loss is too large by one; its gradient is correct.",
           [](const engine::LossFunction& right, const auto& outputs, const Targets& targets) {
             return at::add(right(outputs, targets), 1);
           }),
      loss("loss-detached-output", "The loss is computed from detached outputs: no parameter learns.",
           [](const engine::LossFunction& right, const std::vector<at::Tensor>& outputs, const Targets& targets) {
             std::vector<at::Tensor> detached;
             for (const at::Tensor& output : outputs) detached.push_back(output.defined() ? output.detach() : output);
             return right(detached, targets);
           },
           {need::training}),
      loss("target-of-previous-microbatch", "The loss compares outputs with the previous micro-batch's target.",
           [last = Targets()](const engine::LossFunction& right, const std::vector<at::Tensor>& outputs,
                              const Targets& targets) mutable {
             const Targets used =
                 last.defined() && targets.defined() && last[0].sizes() == targets[0].sizes() ? last : targets;
             last = targets;
             return right(outputs, used);
           },
           {need::several_microbatches}),
      loss("loss-without-last-row", "The loss ignores the last row of a micro-batch.",
           [](const engine::LossFunction& right, const std::vector<at::Tensor>& outputs, const Targets& targets) {
             if (outputs[0].dim() == 0 || outputs[0].size(0) < 2) return right(outputs, targets);
             const auto without_last = [](const at::Tensor& t) { return t.narrow(0, 0, t.size(0) - 1); };
             std::vector<at::Tensor> rest = outputs;
             for (size_t i = 0; i < std::max<size_t>(targets.size(), 1); ++i) rest[i] = without_last(outputs[i]);
             return right(rest, targets.map(without_last));
           }),
      loss("loss-of-other-output", "The loss is computed from the second output.",
           [](const engine::LossFunction& right, const std::vector<at::Tensor>& outputs, const Targets& targets) {
             if (outputs.size() < 2 || !outputs[1].defined() || !outputs[1].is_floating_point() ||
                 outputs[1].sizes() != outputs[0].sizes())
               return right(outputs, targets);
             std::vector<at::Tensor> exchanged = outputs;
             std::swap(exchanged[0], exchanged[1]);
             return right(exchanged, targets);
           }),
      loss("targets-exchanged", "The targets of the first two outputs change places.",
           [](const engine::LossFunction& right, const auto& outputs, const Targets& targets) {
             std::vector<at::Tensor> exchanged(targets.begin(), targets.end());
             std::swap(exchanged[0], exchanged[1]);
             return right(outputs, exchanged);
           },
           {need::several_targets}),
      loss("only-first-target", "The loss compares only the first output with its target.",
           [](const engine::LossFunction& right, const auto& outputs, const Targets& targets) {
             return right(outputs, targets[0]);
           },
           {need::several_targets}),
      loss("later-target-of-previous-microbatch",
           "The loss compares the last output with the previous micro-batch's target.",
           [last = at::Tensor()](const engine::LossFunction& right, const std::vector<at::Tensor>& outputs,
                                 const Targets& targets) mutable {
             std::vector<at::Tensor> used(targets.begin(), targets.end());
             if (last.defined() && last.sizes() == used.back().sizes()) used.back() = last;
             last = targets[targets.size() - 1];
             return right(outputs, used);
           },
           {need::several_targets, need::several_microbatches}),
      loss("loss-in-bf16", "The loss is rounded to bf16.",
           [](const engine::LossFunction& right, const auto& outputs, const Targets& targets) {
             const at::Tensor value = right(outputs, targets);
             return value.to(at::kBFloat16).to(value.scalar_type());
           },
           {need::float32}),
      loss("mean-for-sum", "A sum loss is divided by the number of rows of its micro-batch.",
           [](const engine::LossFunction& right, const std::vector<at::Tensor>& outputs, const Targets& targets) {
             const int64_t rows = outputs[0].dim() > 0 ? outputs[0].size(0) : 1;
             return right(outputs, targets).div(rows);
           },
           {need::sum_loss}),
      loss("sum-for-mean", "A mean loss is multiplied by the number of rows of its micro-batch.",
           [](const engine::LossFunction& right, const std::vector<at::Tensor>& outputs, const Targets& targets) {
             const int64_t rows = outputs[0].dim() > 0 ? outputs[0].size(0) : 1;
             return right(outputs, targets).mul(rows);
           },
           {need::mean_loss}),
      options_mutant("mean-of-means", "Micro-batches of different sizes have the same weight in a mean loss.",
                     [](engine::EngineOptions& options) { options.mean_loss = false; },
                     {need::training, need::mean_loss, need::uneven_rows}),
      options_mutant("sum-weighted", "A sum loss is weighted by rows like a mean loss.",
                     [](engine::EngineOptions& options) { options.mean_loss = true; },
                     {need::training, need::sum_loss, need::uneven_rows}),
      loss("loss-divided-again", "A loss that the user divides is divided by 4 once more.",
           [](const engine::LossFunction& right, const std::vector<at::Tensor>& outputs, const Targets& targets) {
             return right(outputs, targets).div(4);
           },
           {need::training, need::divisor}),
      {"evaluation-divided-as-training",
       "The loss of an evaluation is divided by the divisor of the last training step.",
       divisor_outlives_its_step,
       {need::evaluation_after_training, need::divisor}},
      loss("added-losses-forgotten", "The losses of early stages are not added.",
           [](const engine::LossFunction& right, const std::vector<at::Tensor>& outputs, const Targets& targets) {
             return right({outputs[0]}, targets);
           },
           {need::training, need::added_losses}),
      options_mutant("added-loss-detached", "The losses of early stages are added without their gradients.",
                     [](engine::EngineOptions& options) {
                       options.loss = [right = options.loss](const std::vector<at::Tensor>& outputs,
                                                             const Targets& targets) {
                         std::vector<at::Tensor> detached = outputs;
                         for (size_t i = 1; i < detached.size(); ++i)
                           if (detached[i].defined()) detached[i] = detached[i].detach();
                         return right(detached, targets);
                       };
                     },
                     {need::training, need::added_losses}),
      loss("only-one-loss-added", "Only the first of the losses of early stages is added.",
           [](const engine::LossFunction& right, const std::vector<at::Tensor>& outputs, const Targets& targets) {
             return right({outputs[0], outputs[1]}, targets);
           },
           {need::training, need::added_losses}),
      local_loss("local-loss-dropped", "No gradient begins at the losses of early stages.",
                 [](const at::Tensor&, const at::Tensor& right, const FaultSite&) { return right.detach(); }),
      local_loss("local-loss-doubled", "The losses of early stages count twice.",
                 [](const at::Tensor&, const at::Tensor& right, const FaultSite&) { return at::mul(right, 2); }),
      local_loss("local-loss-divided-again",
                 "The losses of early stages are divided by the number of micro-batches once more.",
                 [](const at::Tensor&, const at::Tensor& right, const FaultSite& site) {
                   return at::div(right, site.microbatches());
                 },
                 {need::training, need::local_losses, need::several_microbatches}),
      local_loss("local-loss-not-divided", "The user's division leaves out the losses of early stages.",
                 [](const at::Tensor& made, const at::Tensor&, const FaultSite&) { return made; },
                 {need::training, need::local_losses, need::divisor}),
      local_loss("local-loss-of-first-microbatch", "A rank takes its losses for the first of them only.",
                 [taken = 0](const at::Tensor&, const at::Tensor& right, const FaultSite&) mutable {
                   return taken++ == 0 ? right : right.detach();
                 }),
      local_loss("local-losses-of-first-rank-only", "Ranks after the first drop the losses of their stages.",
                 [](const at::Tensor&, const at::Tensor& right, const FaultSite& site) {
                   return site.rank == 0 ? right : right.detach();
                 }),
      local_loss("local-loss-not-scaled", "Loss scaling leaves out the losses of early stages.",
                 [](const at::Tensor&, const at::Tensor& right, const FaultSite& site) {
                   return at::div(right, site.of.optimizer.loss_scale);
                 },
                 {need::training, need::local_losses, need::loss_scale}),
      options_mutant(
          "tokens-for-weights", "Micro-batches are weighed by their tokens, not by the tokens' class weights.",
          [](engine::EngineOptions& options) {
            options.mean_count = [](const Targets& targets) {
              return static_cast<double>(at::ne(targets.one(), reference::kIgnoredTarget).sum().item<int64_t>());
            };
          },
          {need::training, need::mean_loss, need::class_weights}),
      options_mutant("padding-counted", "Micro-batches are weighed by all their tokens, ignored ones too.",
                     [](engine::EngineOptions& options) {
                       options.mean_count = [](const Targets& targets) { return elements_of(targets); };
                     },
                     {need::training, need::mean_loss, need::ignored_targets}),
      options_mutant("not-divided", "Gradients are not divided by the number of micro-batches.",
                     [](engine::EngineOptions& options) { options.divide_by_microbatches = false; },
                     {need::division, need::several_microbatches}),
      options_mutant("divided-unasked",
                     "Gradients are divided by the number of micro-batches against the case's setting.",
                     [](engine::EngineOptions& options) { options.divide_by_microbatches = true; },
                     {need::no_division, need::several_microbatches}),
      step_scaled("divided-twice", "Gradients are divided by the number of micro-batches twice.",
                  [](const FaultSite& site) { return 1.0 / site.microbatches(); },
                  {need::division, need::several_microbatches}),
      {"multiplied-by-reciprocal",
       "Gradients are multiplied by the rounded reciprocal of the number of micro-batches.",
       multiplied_by_reciprocal,
       {need::division, need::several_microbatches}},
      step_scaled(
          "loss-parameters-undivided",
          "The gradients of the loss's parameters are not divided by the number of micro-batches.",
          [](const FaultSite& site) {
            return site.of.division == reference::Division::Engine ? 1.0 * site.microbatches() : 1.0;
          },
          {need::division, need::several_microbatches, need::loss_parameters}, "loss."),
      step_scaled("divided-by-ranks", "Gradients are divided by the number of ranks, not of micro-batches.",
                  [](const FaultSite& site) { return 1.0 * site.microbatches() / site.ranks(); }, {need::division}),
  };
}

}  // namespace plumbline::conformance
