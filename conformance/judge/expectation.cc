#include "conformance/judge/expectation.h"

#include <torch/nn/module.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "conformance/corpus/case_pipe.h"
#include "reference/host_results.h"
#include "reference/loss.h"
#include "reference/models/zoo.h"
#include "reference/oracle/case_run.h"
#include "reference/oracle/saved_state.h"
#include "reference/oracle/whole_model.h"
#include "reference/rounding/magnitude.h"

namespace plumbline::conformance {
namespace {

/// The results of `run`, which computes in float64, with their bounds.
Expectation with_bounds(const reference::Case& c, uint64_t seed, int samples,
                        const std::function<reference::Results()>& run) {
  Expectation expected;
  // Counters and other integers do not round: they are expected as in the first, undisturbed run. Copies of a shared
  // parameter round each by itself in a disturbed run, so they differ there; the first stands for all.
  const auto floating = [&] {
    reference::Results results = run();
    std::erase_if(results, [&](const auto& item) {
      if (reference::is_differing_copy(item.first)) return true;
      if (item.second.is_floating_point()) return false;
      expected.value.emplace(item.first, graph::to_host(item.second));
      return true;
    });
    return results;
  };
  const reference::BoundedResults bounded =
      reference::running_error(floating, reference::rounding_model(reference::scalar_type(c.dtype), seed), samples);
  for (const auto& [key, value] : bounded.value) {
    expected.value.emplace(key, graph::to_host(value));
    expected.bounds.elements.emplace(key, graph::to_host(bounded.bound.at(key)));
    // An all-zero true value has no relative norm; only the bounds of its elements apply.
    const double gate = bounded.rel_gate.at(key);
    expected.bounds.norms[key] = {std::isfinite(gate) ? gate : 1e300, std::isfinite(gate) ? 0.0 : 1.0};
  }
  return expected;
}

bool is_power_of_two(double number) {
  int exponent = 0;
  return std::frexp(number, &exponent) == 0.5;
}

/// Why a mean loss of the case may divide by another number than a power of two; empty if none does. Evaluations count,
/// too: their losses are results.
std::string mean_problem(const reference::Case& c, uint64_t seed) {
  if (c.divided) return "its means are over micro-batches of several sizes";
  const models::Model model = models::make_model(c, seed);
  int batches = 0;
  for (const reference::Step& step : c.steps) {
    if (step != reference::StepKind::Train && step != reference::StepKind::Eval) continue;
    const int rows = reference::rows_of(c, step);
    const models::Batch batch = models::make_batch(c, step, seed, batches++);  // batches may differ in length
    if (!reference::has_loss(c.loss, batch.targets)) continue;
    if (c.loss.reduction == reference::Reduction::BatchMean) {
      if (!batch.targets.defined()) continue;
      const double counted = reference::counted_targets(c.loss, batch.targets);
      if (!is_power_of_two(counted))
        return "its mean divides by " + std::to_string(static_cast<int64_t>(counted)) + " elements in all targets of " +
               std::to_string(rows) + " rows, which is not a power of two";
      continue;
    }
    // A mean divides by the number of an output's elements, and by each micro-batch's share of the rows.
    model.module->train(step == reference::StepKind::Train);
    const std::vector<at::Tensor> outputs = model.forward(batch.inputs);
    for (size_t i = 0; i < std::max<size_t>(batch.targets.size(), 1); ++i) {
      const int64_t elements = outputs.at(i).numel();
      if (!is_power_of_two(static_cast<double>(elements)) || rows % c.microbatches != 0)
        return "its mean divides by " + std::to_string(elements) + " elements in " + std::to_string(rows) +
               " rows over " + std::to_string(c.microbatches) + " micro-batches, which is not a power of two in each";
    }
  }
  return "";
}

}  // namespace

Expectation bounded_expectation(const reference::Case& c, uint64_t seed, int samples) {
  reference::WholeModelOptions options;
  options.dtype = reference::Dtype::F64;
  return with_bounds(c, seed, samples, [&] { return reference::run_whole_model(c, seed, options); });
}

Expectation bounded_stages(const reference::Case& c, uint64_t seed, const reference::StageOrders& orders) {
  return with_bounds(c, seed, reference::kRoundingSamples,
                     [&] { return reference::run_detached(c, seed, orders, reference::Dtype::F64); });
}

std::string exactness_problem(const reference::Case& c, uint64_t seed) {
  reference::Case sums = reference::uninterrupted(c);
  if (std::ranges::find(sums.steps, reference::StepKind::Optimizer, &reference::Step::kind) != sums.steps.end()) {
    if (c.division != reference::Division::Nobody)
      return "an update adds gradients that are divided by the number of micro-batches to parameters that are not";
    if (c.loss.reduction != reference::Reduction::Sum)
      return "an update adds gradients of a mean to parameters, which are whole numbers";
  }
  if (c.division != reference::Division::Nobody && !is_power_of_two(c.microbatches))
    return "gradients are divided by " + std::to_string(c.microbatches) + ", which is not a power of two";
  if (c.loss.reduction != reference::Reduction::Sum)
    if (std::string problem = mean_problem(sums, seed); !problem.empty()) return problem;
  // Means, the division by the number of micro-batches and the scale of losses (case_file.h) are powers of two, which
  // change no significand: only the sums need the proof.
  sums.loss.reduction = reference::Reduction::Sum;
  sums.division = reference::Division::Nobody;
  sums.optimizer.loss_scale = 1;
  // An update that adds bounds what one that subtracts gives.
  sums.optimizer.learning_rate = -c.optimizer.learning_rate;
  reference::WholeModelOptions options;
  options.by_microbatch = false;
  options.dtype = reference::Dtype::F64;
  options.absolute_values = true;
  // What a process initializes in its first run is no part of the sums: an unmeasured run does it.
  reference::Results results = reference::run_whole_model(sums, seed, options);
  reference::MagnitudeInterposer interposer;
  {
    const capture::InterposerScope scope(interposer);
    results = reference::run_whole_model(sums, seed, options);
  }
  for (const auto& [key, tensor] : results)
    if (tensor.is_floating_point()) interposer.see(tensor, key);
  return reference::why_not_exact(interposer.result(), reference::scalar_type(c.dtype));
}

namespace {

int uses_of(const graph::Graph& graph, graph::ValueId value) {
  auto uses = static_cast<int>(std::ranges::count(graph.outputs, value));
  for (const graph::Node& node : graph.nodes)
    graph::for_each_use(node, [&](graph::ValueId used) { uses += used == value; });
  return uses;
}

bool groups_sums(const split::Pipe& pipe) {
  return std::ranges::any_of(pipe.boundaries, [&](const split::Boundary& boundary) {
    if (!boundary.has_gradient || boundary.consumers.empty()) return false;
    return std::any_of(boundary.consumers.begin(), boundary.consumers.end() - 1,
                       [&](const split::Boundary::Consumer& c) {
                         const graph::Graph& graph = pipe.stages[c.stage].graph;
                         return uses_of(graph, graph.inputs[c.input].value) > 1;
                       });
  });
}

}  // namespace

CaseTraits case_traits(const reference::Case& c, int stages, uint64_t seed) {
  const models::Model model = models::make_model(c, seed);
  const split::Pipe pipe = case_pipe(c, model, stages, seed);
  CaseTraits traits;
  traits.shares_parameters = !pipe.shared.empty();
  traits.groups_sums = groups_sums(pipe);
  traits.has_buffers = !model.module->buffers().empty();
  traits.runs_under_autocast =
      std::ranges::any_of(pipe.stages, [](const split::Stage& stage) { return !stage.graph.autocast.empty(); });
  for (const split::Stage& stage : pipe.stages)
    for (const graph::Node& node : stage.graph.nodes)
      traits.draws_random_numbers = traits.draws_random_numbers || draws_random_numbers(node);
  return traits;
}

}  // namespace plumbline::conformance
