// Mutants between the steps of a case: accumulated gradients, zero_grad, evaluations, optimizers.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/mul.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "conformance/mutants/hooked_steps.h"
#include "conformance/mutants/mutants.h"
#include "conformance/mutants/same_bytes.h"

namespace plumbline::conformance {
namespace {

using MakeStepHooks = std::function<StepHooks(const FaultSite& site)>;

Mutant steps(std::string name, std::string what, MakeStepHooks hooks, std::vector<Need> needs, int least_ranks = 1) {
  return {std::move(name), std::move(what),
          [hooks = std::move(hooks)](const FaultSite& site) { return step_fault(hooks(site)); }, std::move(needs),
          least_ranks};
}

bool has_gradients(const reference::CaseSubject& subject) {
  const reference::NamedTensors all = subject.parameters();
  return std::any_of(all.begin(), all.end(), [](const auto& item) { return item.second.grad().defined(); });
}

std::vector<at::Tensor> values_of(const reference::CaseSubject& subject) {
  std::vector<at::Tensor> values;
  for (const auto& [name, parameter] : subject.parameters()) values.push_back(parameter.detach().clone());
  return values;
}

void set_values(const reference::CaseSubject& subject, const std::vector<at::Tensor>& values) {
  const reference::NamedTensors parameters = subject.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i].second.detach().copy_(values[i]);
}

/// Replaces every gradient by `change` of it.
void replace_gradients(const reference::CaseSubject& subject,
                       const std::function<at::Tensor(const at::Tensor& grad)>& change) {
  for (const auto& [name, parameter] : subject.parameters())
    if (parameter.grad().defined()) parameter.mutable_grad() = change(parameter.grad());
}

void divide_gradients(const reference::CaseSubject& subject, int microbatches) {
  replace_gradients(subject, [&](const at::Tensor& grad) { return at::div(grad, microbatches); });
}

/// Calls `change` after each evaluation.
StepHooks after_evaluation(const FaultSite& site, std::function<void(reference::CaseSubject& inner)> change) {
  return {.evaluate = [site, change = std::move(change)](reference::CaseSubject& inner, int step,
                                                         const models::Batch& batch) {
    inner.evaluate(step, batch);
    if (has_gradients(inner)) site.happens();
    change(inner);
  }};
}

/// Changes every parameter that has a gradient before each zero_grad, that is, right after the optimizer.
StepHooks after_update(
    const FaultSite& site,
    std::function<void(at::Tensor& values, const at::Tensor& grad, const std::string& name)> change) {
  return {.zero_grad = [site, change = std::move(change)](reference::CaseSubject& inner) {
    for (const auto& [name, parameter] : inner.parameters()) {
      if (!parameter.grad().defined()) continue;
      at::Tensor values = parameter.detach();
      const at::Tensor before = values.clone();
      change(values, parameter.grad(), name);
      if (!same_bytes(before, values)) site.happens();
    }
    inner.zero_grad();
  }};
}

/// Changes the gradients after each training step.
StepHooks after_training(const FaultSite& site, std::function<void(at::Tensor& grad)> change) {
  return {
      .train = [site, change = std::move(change)](reference::CaseSubject& inner, int step, const models::Batch& batch) {
        inner.train(step, batch);
        for (const auto& [name, parameter] : inner.parameters()) {
          if (!parameter.grad().defined()) continue;
          const at::Tensor before = parameter.grad();
          change(parameter.mutable_grad());
          if (!same_bytes(before, parameter.grad())) site.happens();
        }
      }};
}

}  // namespace

std::vector<Mutant> mutants_in_the_steps() {
  return {
      steps("zero-grad-missing", "zero_grad does nothing.",
            [](const FaultSite& site) {
              return StepHooks{.zero_grad = [site](reference::CaseSubject& inner) {
                if (has_gradients(inner)) site.happens();
              }};
            },
            {need::zero_grad_between}),
      steps(
          "zero-grad-on-first-rank", "zero_grad does nothing on ranks after the first.",
          [](const FaultSite& site) {
            return StepHooks{.zero_grad = [site](reference::CaseSubject& inner) {
              if (site.rank == 0) return inner.zero_grad();
              if (has_gradients(inner)) site.happens();
            }};
          },
          {need::zero_grad_between}, 2),
      steps("gradients-cleared-by-a-step", "A training step clears the gradients of earlier steps.",
            [](const FaultSite& site) {
              return StepHooks{.train = [site](reference::CaseSubject& inner, int step, const models::Batch& batch) {
                if (has_gradients(inner)) site.happens();
                inner.zero_grad();
                inner.train(step, batch);
              }};
            },
            {need::several_trainings}),
      steps("earlier-steps-divided-again", "Each step divides the gradients of earlier steps again.",
            [](const FaultSite& site) {
              return StepHooks{.train = [site](reference::CaseSubject& inner, int step, const models::Batch& batch) {
                if (has_gradients(inner)) site.happens();
                divide_gradients(inner, site.microbatches());
                inner.train(step, batch);
              }};
            },
            {need::several_trainings, need::division, need::several_microbatches}),
      steps("step-done-twice", "Every training step is executed twice.",
            [](const FaultSite& site) {
              return StepHooks{.train = [site](reference::CaseSubject& inner, int step, const models::Batch& batch) {
                site.happens();
                inner.train(step, batch);
                inner.train(step, batch);
              }};
            },
            {need::training}),
      steps("evaluation-clears-gradients", "An evaluation clears the gradients.",
            [](const FaultSite& site) {
              return after_evaluation(site, [](reference::CaseSubject& inner) { inner.zero_grad(); });
            },
            {need::evaluation_after_training}),
      steps("evaluation-doubles-gradients", "An evaluation adds every gradient to itself.",
            [](const FaultSite& site) {
              return after_evaluation(site, [](reference::CaseSubject& inner) {
                replace_gradients(inner, [](const at::Tensor& grad) { return at::mul(grad, 2); });
              });
            },
            {need::evaluation_after_training}),
      steps("evaluation-divides-gradients", "An evaluation divides the gradients by the number of micro-batches.",
            [](const FaultSite& site) {
              return after_evaluation(site, [count = site.microbatches()](reference::CaseSubject& inner) {
                divide_gradients(inner, count);
              });
            },
            {need::evaluation_after_training, need::several_microbatches}),
      steps("evaluation-with-first-statistics", "Every evaluation reads the buffers as the first one found them.",
            [](const FaultSite& site) {
              auto first = std::make_shared<std::vector<at::Tensor>>();
              return StepHooks{
                  .evaluate = [site, first](reference::CaseSubject& inner, int step, const models::Batch& batch) {
                    const reference::NamedTensors buffers = inner.buffers();
                    std::vector<at::Tensor> now;
                    for (const auto& [name, buffer] : buffers) now.push_back(buffer.clone());
                    if (first->empty()) *first = now;
                    for (size_t i = 0; i < now.size(); ++i) {
                      if (!same_bytes(now[i], first->at(i))) site.happens();
                      buffers[i].second.copy_(first->at(i));
                    }
                    inner.evaluate(step, batch);
                    for (size_t i = 0; i < now.size(); ++i) buffers[i].second.copy_(now[i]);
                  }};
            },
            {need::evaluation_after_training, need::several_evaluations, need::buffers}),
      steps("evaluation-trains", "An evaluation is executed as a training step.",
            [](const FaultSite& site) {
              return StepHooks{.evaluate = [site](reference::CaseSubject& inner, int step, const models::Batch& batch) {
                site.happens();
                inner.train(step, batch);
              }};
            },
            {need::evaluation}),
      steps("evaluation-of-the-batch-before", "An evaluation runs on the batch of the previous training step.",
            [](const FaultSite& site) {
              auto last = std::make_shared<models::Batch>();
              return StepHooks{.train =
                                   [last](reference::CaseSubject& inner, int step, const models::Batch& batch) {
                                     *last = batch;
                                     inner.train(step, batch);
                                   },
                               .evaluate =
                                   [last, site](reference::CaseSubject& inner, int step, const models::Batch& batch) {
                                     if (!last->inputs.empty()) site.happens();
                                     inner.evaluate(step, last->inputs.empty() ? batch : *last);
                                   }};
            },
            {need::evaluation_after_training}),
  };
}

std::vector<Mutant> mutants_in_the_optimizer() {
  const std::vector<Need> optimizer = {need::optimizer}, several = {need::optimizer, need::several_trainings};
  return {
      steps(
          "parameter-never-updated", "The optimizer of the last rank misses its last parameter.",
          [](const FaultSite& site) {
            auto called = std::make_shared<bool>(false);
            return StepHooks{.parameters = [called, site](const reference::CaseSubject& inner) {
              reference::NamedTensors all = inner.parameters();
              if (std::exchange(*called, true) || !site.is_last_rank()) return all;
              while (!all.empty() && !all.back().second.requires_grad()) all.pop_back();
              if (!all.empty()) all.pop_back();
              site.happens();
              return all;
            }};
          },
          optimizer),
      steps(
          "optimizer-holds-copies", "The optimizer updates unused copies of the parameters.",
          [](const FaultSite& site) {
            auto called = std::make_shared<bool>(false);
            return StepHooks{.parameters = [called, site](const reference::CaseSubject& inner) {
              reference::NamedTensors all = inner.parameters();
              if (std::exchange(*called, true)) return all;
              site.happens();
              for (auto& [name, parameter] : all) {
                const at::Tensor copy = parameter.detach().clone();
                parameter = copy.set_requires_grad(parameter.requires_grad());
              }
              return all;
            }};
          },
          optimizer),
      steps(
          "stale-parameters", "A training step uses the parameters of the previous step.",
          [](const FaultSite& site) {
            auto before = std::make_shared<std::vector<at::Tensor>>();
            return StepHooks{
                .train = [before, site](reference::CaseSubject& inner, int step, const models::Batch& batch) {
                  const std::vector<at::Tensor> now = values_of(inner);
                  if (!before->empty()) {
                    site.happens();
                    set_values(inner, *before);
                  }
                  inner.train(step, batch);
                  // A rank has no parameters before its first step.
                  if (!now.empty()) set_values(inner, now);
                  *before = now;
                }};
          },
          several),
      steps(
          "updated-twice", "Parameters are updated a second time, without momentum.",
          [](const FaultSite& site) {
            return after_update(
                site, [rate = site.of.optimizer.learning_rate](at::Tensor& values, const at::Tensor& grad,
                                                               const std::string&) { values.sub_(grad, rate); });
          },
          several),
      steps("updated-in-bf16", "Parameters are kept in bf16 from step to step.",
            [](const FaultSite& site) {
              return after_update(site, [](at::Tensor& values, const at::Tensor&, const std::string&) {
                values.copy_(values.to(at::kBFloat16));
              });
            },
            {need::optimizer, need::several_trainings, need::float32}),
      steps(
          "momentum-only-on-first-rank", "Ranks after the first forget their momentum after each step.",
          [](const FaultSite& site) {
            auto before = std::make_shared<std::vector<at::Tensor>>();
            return StepHooks{.train =
                                 [before](reference::CaseSubject& inner, int step, const models::Batch& batch) {
                                   inner.train(step, batch);
                                   *before = values_of(inner);
                                 },
                             .zero_grad =
                                 [before, site](reference::CaseSubject& inner) {
                                   const reference::NamedTensors parameters = inner.parameters();
                                   for (size_t i = 0; i < before->size() && site.rank > 0; ++i) {
                                     const at::Tensor& grad = parameters[i].second.grad();
                                     if (!grad.defined()) continue;
                                     at::Tensor values = parameters[i].second.detach();
                                     const at::Tensor plain = (*before)[i].sub(grad, site.of.optimizer.learning_rate);
                                     if (!same_bytes(plain, values)) site.happens();
                                     values.copy_(plain);
                                   }
                                   inner.zero_grad();
                                 }};
          },
          several, 2),
      steps(
          "last-rank-does-not-learn", "The last rank loses its gradients before the optimizer runs.",
          [](const FaultSite& site) {
            return site.is_last_rank() ? after_training(site, [](at::Tensor& grad) { grad = at::Tensor(); })
                                       : StepHooks{};
          },
          optimizer),
      steps(
          "learning-rate-of-last-rank", "The last rank learns with twice the learning rate.",
          [](const FaultSite& site) {
            return site.is_last_rank() ? after_training(site, [](at::Tensor& grad) { grad = at::mul(grad, 2); })
                                       : StepHooks{};
          },
          optimizer, 2),
      steps(
          "last-step-not-applied", "The last update is undone.",
          [](const FaultSite& site) {
            auto calls = std::make_shared<int>(0);
            auto before = std::make_shared<std::vector<at::Tensor>>();
            return StepHooks{.train =
                                 [before](reference::CaseSubject& inner, int step, const models::Batch& batch) {
                                   inner.train(step, batch);
                                   *before = values_of(inner);
                                 },
                             .parameters =
                                 [before, calls, site](const reference::CaseSubject& inner) {
                                   // The first caller is the optimizer, the second the report.
                                   if (++*calls == 2 && !before->empty()) {
                                     site.happens();
                                     set_values(inner, *before);
                                   }
                                   return inner.parameters();
                                 }};
          },
          optimizer),
  };
}

}  // namespace plumbline::conformance
