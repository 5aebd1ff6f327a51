// Mutants between the data-parallel replicas of a pipeline: sums of gradients that are missing, partial or doubled, and
// parameters that are gathered wrongly.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sub.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "conformance/corpus/case_schedule.h"
#include "conformance/mutants/change_bytes.h"
#include "conformance/mutants/hooked_steps.h"
#include "conformance/mutants/same_bytes.h"
#include "conformance/mutants/wire_mutant.h"

namespace plumbline::conformance {
namespace {

const std::vector<Need> kReplicas = {need::replicas, need::training};

int replica_of(const FaultSite& site) { return site.rank / (site.ranks() / site.of.replicas); }

std::vector<Need> replicas_and(const Need& other) { return {need::replicas, need::training, other}; }

/// The gradients of each training step, after it; `before` are those of earlier steps, undefined where there are none.
Mutant gradients(std::string name, std::string what,
                 std::function<at::Tensor(const FaultSite&, const at::Tensor& grad, const at::Tensor& before)> change,
                 std::vector<Need> needs = kReplicas) {
  return {std::move(name), std::move(what),
          [change = std::move(change)](const FaultSite& site) {
            return step_fault(
                {.train = [site, change](reference::CaseSubject& inner, int step, const models::Batch& batch) {
                  const c10::NoGradGuard no_grad;
                  std::map<const void*, at::Tensor> before;
                  for (const auto& [parameter, tensor] : inner.parameters())
                    if (tensor.grad().defined()) before[tensor.unsafeGetTensorImpl()] = tensor.grad().clone();
                  {
                    const c10::AutoGradMode grad(true);
                    inner.train(step, batch);
                  }
                  for (const auto& [parameter, tensor] : inner.parameters()) {
                    if (!tensor.grad().defined()) continue;
                    const at::Tensor changed = change(site, tensor.grad(), before[tensor.unsafeGetTensorImpl()]);
                    if (same_bytes(changed, tensor.grad())) continue;
                    tensor.mutable_grad() = changed;
                    site.happens();
                  }
                }});
          },
          std::move(needs), 2};
}

/// The gradient with the step's own part times `factor`.
at::Tensor step_times(double factor, const at::Tensor& grad, const at::Tensor& before) {
  return before.defined() ? at::add(before, at::sub(grad, before), factor) : at::mul(grad, factor);
}

Mutant shards(std::string name, std::string what, Hooks hooks, std::vector<Need> needs = {need::sharded}) {
  return on_the_wire(std::move(name), std::move(what), std::move(hooks), std::move(needs));
}

/// Overwrites the words of 8 bytes that other replicas have, as ParameterShards does between uses.
void drop_parts_of_others(const FaultSite& site, const reference::NamedTensors& parameters) {
  const size_t mine = replica_of(site), replicas = site.of.replicas;
  for (const auto& [name, parameter] : parameters) {
    constexpr size_t kWord = 8;
    change_bytes(parameter, [&](std::span<std::byte> bytes) {
      const size_t words = (bytes.size() + kWord - 1) / kWord;
      const size_t first = std::min(bytes.size(), mine * words / replicas * kWord);
      const size_t last = std::min(bytes.size(), (mine + 1) * words / replicas * kWord);
      std::ranges::fill(bytes.first(first), std::byte{0xff});
      std::ranges::fill(bytes.subspan(last), std::byte{0xff});
    });
    site.happens();
  }
}

/// Replaces the actions that the engine would add for the case's replicas by a changed list of them.
Mutant actions(std::string name, std::string what, bool (*change)(schedule::Schedule& schedule),
               std::vector<Need> needs = kReplicas) {
  return {std::move(name), std::move(what),
          [change](const FaultSite& site) {
            Fault fault;
            fault.schedule = [site, change](schedule::Schedule& schedule) {
              schedule = with_replica_actions(schedule, replica_options(site.of));
              if (change(schedule)) site.happens();
            };
            return fault;
          },
          std::move(needs), 2};
}

}  // namespace

std::vector<Mutant> mutants_between_replicas() {
  using schedule::ActionType;
  return {
      on_the_wire("replicas-not-summed", "Each replica keeps its own gradients.",
                  flags_cleared([](const Message&, int) { return true; }), kReplicas),
      on_the_wire("replicas-not-summed-in-halves", "With backwards in halves each replica keeps its own gradients.",
                  flags_cleared([](const Message&, int) { return true; }), replicas_and(need::halves)),
      on_the_wire("replica-keeps-its-own", "Later replicas keep their own gradients, the first has the sum.",
                  flags_cleared([](const Message& message, int rank) { return message.peer > rank; }), kReplicas),
      on_the_wire("replica-counted-twice", "The gradients of other replicas are added twice.",
                  later_copy_changed([](at::Tensor& grad) { grad.mul_(2); }), kReplicas),
      on_the_wire("replicas-summed-in-bf16", "Gradients of other replicas are rounded to bf16 before they are summed.",
                  later_copy_changed([](at::Tensor& grad) { grad.copy_(grad.to(at::kBFloat16)); }),
                  replicas_and(need::float32)),
      gradients("replicas-averaged-twice", "The sum over the replicas is divided by their number once more.",
                [](const FaultSite& site, const at::Tensor& grad, const at::Tensor& before) {
                  return step_times(1.0 / site.of.replicas, grad, before);
                }),
      gradients(
          "replica-divides-by-its-own", "Gradients are divided by the micro-batches of one replica.",
          [](const FaultSite& site, const at::Tensor& grad, const at::Tensor& before) {
            return step_times(site.of.replicas, grad, before);
          },
          replicas_and(need::division)),
      gradients(
          "earlier-steps-summed-again", "Accumulated gradients of earlier steps are summed over the replicas again.",
          [](const FaultSite& site, const at::Tensor& grad, const at::Tensor& before) {
            return before.defined() ? at::add(grad, before, site.of.replicas - 1) : grad;
          },
          replicas_and(need::several_trainings)),
      gradients("replica-sum-in-first-only", "Gradients of later replicas are lost.",
                [](const FaultSite& site, const at::Tensor& grad, const at::Tensor&) {
                  return replica_of(site) == 0 ? grad : at::mul(grad, 0);
                }),
      {"norm-counts-replicas", "The norm of all gradients counts each replica's.",
       [](const FaultSite& site) {
         return step_fault({.gradient_norm = [site](const reference::CaseSubject& inner, reference::NormKind kind) {
           const double right = inner.gradient_norm(kind);
           if (kind != reference::NormKind::Two || right == 0) return right;
           site.happens();
           return right * std::sqrt(site.of.replicas);
         }});
       },
       replicas_and(need::clipping), 2},
      shards("shard-empty", "Parts of other replicas stay empty.",
             arrived(Load::Shard, [](const Message&, at::Tensor& numbers) { numbers.zero_(); })),
      shards("shard-reversed", "Parts of other replicas are put together in reverse.",
             arrived(Load::Shard, [](const Message&, at::Tensor& numbers) { numbers.copy_(numbers.flip(0)); })),
      shards("shard-of-earlier-gather", "A gathering returns the parts of an earlier one.", stale(Load::Shard),
             {need::sharded, need::optimizer, need::several_trainings}),
      {"parameters-divided-after-evaluation",
       "An evaluation leaves the parameters divided among the replicas.",
       [](const FaultSite& site) {
         return step_fault({.evaluate = [site](reference::CaseSubject& inner, int step, const models::Batch& batch) {
           inner.evaluate(step, batch);
           drop_parts_of_others(site, inner.parameters());
         }});
       },
       {need::sharded, need::evaluation},
       2},
      actions("reduced-too-early", "A stage's gradients are summed before its last micro-batch.",
              [](schedule::Schedule& schedule) {
                for (std::vector<schedule::Action>& list : schedule.ranks) {
                  const auto sum = std::ranges::find(list, ActionType::REDUCE_GRAD, &schedule::Action::type);
                  if (sum == list.end()) continue;
                  const auto last = std::find_if(std::make_reverse_iterator(sum), list.rend(), [&](const auto& action) {
                    return action.stage == sum->stage && schedule::is_compute(action.type);
                  });
                  std::rotate(last.base() - 1, sum, sum + 1);
                  return true;
                }
                return false;
              }),
      actions("replica-takes-no-part", "The last rank does not take part in the sum of its gradients.",
              [](schedule::Schedule& schedule) {
                return std::erase_if(schedule.ranks.back(), [](const schedule::Action& action) {
                         return action.type == ActionType::REDUCE_GRAD || action.type == ActionType::WAIT_REDUCE_GRAD;
                       }) > 0;
              }),
      actions("used-ungathered", "A stage's parameters are gathered after its first use.",
              [](schedule::Schedule& schedule) {
                std::vector<schedule::Action>& list = schedule.ranks.front();
                const auto gather = std::ranges::find(list, ActionType::UNSHARD, &schedule::Action::type);
                if (gather == list.end()) return false;
                const auto use = std::find_if(gather, list.end(), [&](const schedule::Action& action) {
                  return action.stage == gather->stage && schedule::is_compute(action.type);
                });
                std::rotate(gather, gather + 1, use + 1);
                return true;
              },
              {need::sharded}),
  };
}

}  // namespace plumbline::conformance
