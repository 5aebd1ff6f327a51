// Mutants between the gradients and the update: the norm over all stages, clipping, loss scaling, skipped steps.
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <limits>

#include "conformance/corpus/case_pipe.h"
#include "conformance/mutants/hooked_steps.h"
#include "conformance/mutants/mutants.h"
#include "conformance/mutants/options_mutant.h"
#include "reference/models/zoo.h"
#include "reference/oracle/gradient_norm.h"

namespace plumbline::conformance {
namespace {

using reference::CaseSubject;
using reference::NormKind;

/// The norm that the rank gets in place of `right`, the norm of all ranks.
using WrongNorm = std::function<double(const CaseSubject& inner, NormKind kind, double right, const FaultSite& site)>;

Mutant norm(std::string name, std::string what, WrongNorm wrong, std::vector<Need> needs = {need::clipping},
            int least_ranks = 1) {
  const bool skips = !needs.empty() && needs.front().what == need::skipped_steps.what;
  return {std::move(name), std::move(what),
          [wrong = std::move(wrong), skips](const FaultSite& site) {
            return step_fault({.gradient_norm = [site, wrong, skips](const CaseSubject& inner, NormKind kind) {
              const double right = inner.gradient_norm(kind);
              // A step that will be skipped is not clipped, and of the norm before it only whether it is finite counts.
              const bool asks_finite = site.of.optimizer.skip_nonfinite && kind == NormKind::Infinity;
              if (asks_finite && !std::isfinite(right) && !skips) return right;
              const double value = wrong(inner, kind, right, site);
              if (asks_finite ? std::isfinite(value) != std::isfinite(right) : value != right) site.happens();
              return value;
            }});
          },
          std::move(needs), least_ranks};
}

double norm_of_rank(const CaseSubject& inner, NormKind kind, const FaultSite& site) {
  return reference::gradient_norm(inner.parameters(), kind, site.of.dtype);
}

/// The names of the parameters that several stages hold, once for each stage beyond the first.
std::vector<std::string> copies(const FaultSite& site) {
  const models::Model model = models::make_model(site.of, site.seed);
  std::vector<std::string> names;
  for (const split::SharedParameter& shared : case_pipe(site.of, model, site.schedule.stages, site.seed).shared)
    names.insert(names.end(), shared.stages.size() - 1, shared.name);
  return names;
}

double with_copies(const CaseSubject& inner, double right, const FaultSite& site) {
  double squares = right * right;
  for (const std::string& name : copies(site))
    for (const auto& [held, parameter] : inner.parameters())
      if (held == name) {
        const double own = reference::gradient_norm({{held, parameter}}, NormKind::Two, site.of.dtype);
        squares += own * own;
        break;
      }
  return std::sqrt(squares);
}

double without_loss(const CaseSubject& inner, double right, const FaultSite& site) {
  reference::NamedTensors of_loss = inner.parameters();
  std::erase_if(of_loss, [](const auto& parameter) { return !parameter.first.starts_with("loss."); });
  const double own = reference::gradient_norm(of_loss, NormKind::Two, site.of.dtype);
  return std::sqrt(right * right - own * own);
}

}  // namespace

std::vector<Mutant> mutants_in_the_norm() {
  return {
      norm(
          "norm-of-own-rank", "Each rank clips by the norm of its own gradients.",
          [](const CaseSubject& inner, NormKind kind, double, const FaultSite& site) {
            return norm_of_rank(inner, kind, site);
          },
          {need::clipping}, 2),
      norm("norm-of-other-kind", "The 2-norm is taken for the infinity norm, and the other way round.",
           [](const CaseSubject& inner, NormKind kind, double, const FaultSite&) {
             return inner.gradient_norm(kind == NormKind::Two ? NormKind::Infinity : NormKind::Two);
           }),
      norm("norm-squared", "The root of the sum of squares is left out.",
           [](const CaseSubject&, NormKind kind, double right, const FaultSite&) {
             return kind == NormKind::Two ? right * right : right;
           }),
      norm("norm-counts-copies", "A shared parameter counts once for each stage that holds it.",
           [](const CaseSubject& inner, NormKind kind, double right, const FaultSite& site) {
             return kind == NormKind::Two ? with_copies(inner, right, site) : right;
           },
           {need::clipping, need::shared_parameters}),
      norm("norm-without-loss", "On the rank that holds them, the loss's parameters do not count in the norm.",
           [](const CaseSubject& inner, NormKind kind, double right, const FaultSite& site) {
             return kind == NormKind::Two ? without_loss(inner, right, site) : right;
           },
           {need::clipping, need::loss_parameters}),
      norm("norm-in-bf16", "The norm is rounded to bf16.",
           [](const CaseSubject&, NormKind, double right, const FaultSite&) {
             return static_cast<double>(static_cast<float>(c10::BFloat16(static_cast<float>(right))));
           }),
      norm("norm-of-scaled-gradients", "The norm is that of the gradients before they are scaled back.",
           [](const CaseSubject&, NormKind, double right, const FaultSite& site) {
             return right * site.of.optimizer.loss_scale;
           },
           {need::clipping, need::loss_scale}),
      norm(
          "norm-of-microbatch-means", "The norm is that of the gradients divided by the number of micro-batches.",
          [](const CaseSubject&, NormKind, double right, const FaultSite& site) { return right / site.microbatches(); },
          {need::clipping, need::several_microbatches}),
      norm(
          "clipped-on-first-rank-only", "Ranks after the first do not clip.",
          [](const CaseSubject&, NormKind, double right, const FaultSite& site) {
            return site.rank == 0 ? right : 0.0;
          },
          {need::clipping}, 2),
      norm(
          "step-skipped-on-own-rank", "Only the ranks whose own gradients overflow skip the step.",
          [](const CaseSubject& inner, NormKind kind, double, const FaultSite& site) {
            return norm_of_rank(inner, kind, site);
          },
          {need::skipped_steps}, 2),
      norm("overflow-ignored", "A step is taken although gradients are not finite.",
           [](const CaseSubject&, NormKind, double right, const FaultSite&) {
             return std::isfinite(right) ? right : 1.0;
           },
           {need::skipped_steps}),
      norm("every-step-skipped", "Every step is skipped.",
           [](const CaseSubject&, NormKind, double, const FaultSite&) {
             return std::numeric_limits<double>::infinity();
           },
           {need::skipped_steps}),
      options_mutant("loss-not-scaled", "The losses are not scaled, but the gradients are scaled back.",
                     [](engine::EngineOptions& options) { options.loss_scale = 1.0; }, {need::loss_scale}),
      options_mutant("loss-scaled-twice", "The losses are scaled twice, and the gradients scaled back once.",
                     [](engine::EngineOptions& options) { options.loss_scale *= options.loss_scale; },
                     {need::loss_scale}),
      {"none-becomes-zeros",
       "Parameters without a gradient get one of zeros before the update.",
       [](const FaultSite& site) {
         return step_fault({.train = [site](CaseSubject& inner, int step, const models::Batch& batch) {
           inner.train(step, batch);
           for (const auto& [name, parameter] : inner.parameters()) {
             if (parameter.grad().defined()) continue;
             site.happens();
             parameter.mutable_grad() = at::zeros_like(parameter.detach());
           }
         }});
       },
       {need::optimizer}},
      {"zeros-become-none",
       "Gradients of zeros are dropped before the update.",
       [](const FaultSite& site) {
         return step_fault({.train = [site](CaseSubject& inner, int step, const models::Batch& batch) {
           inner.train(step, batch);
           for (const auto& [name, parameter] : inner.parameters()) {
             if (!parameter.grad().defined() || parameter.grad().abs().max().item<double>() != 0) continue;
             site.happens();
             parameter.mutable_grad() = at::Tensor();
           }
         }});
       },
       {need::optimizer}},
  };
}

}  // namespace plumbline::conformance
