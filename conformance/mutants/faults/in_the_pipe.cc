// Mutants in the split model: gradients across boundaries, shared parameters, the mode of capture, parameter values.
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <set>
#include <utility>

#include "conformance/mutants/change_bytes.h"
#include "conformance/mutants/faults/pipe_fault.h"
#include "conformance/mutants/mutants.h"
#include "conformance/mutants/same_bytes.h"
#include "runtime/graph/gradient_reach.h"

namespace plumbline::conformance {
namespace {

/// Changes a pipe; returns whether it did.
using PipeChange = std::function<bool(split::Pipe& pipe)>;

Mutant pipe(std::string name, std::string what, PipeChange change, std::vector<Need> needs = {need::training}) {
  return {std::move(name), std::move(what),
          [change = std::move(change)](const FaultSite& site) {
            return pipe_fault([site, change](bool training, split::Pipe& made) {
              if (training && change(made)) site.happens();
            });
          },
          std::move(needs)};
}

/// Removes the gradients of the boundaries that `lost` selects.
template <class Lost>
PipeChange without_gradients(Lost lost) {
  return [lost](split::Pipe& pipe) {
    bool any = false;
    for (split::Boundary& boundary : pipe.boundaries)
      if (boundary.has_gradient && lost(pipe, boundary)) {
        boundary.has_gradient = false;
        any = true;
      }
    return any;
  };
}

bool skips(const split::Pipe&, const split::Boundary& boundary) {
  return std::any_of(boundary.consumers.begin(), boundary.consumers.end(),
                     [&](const split::Boundary::Consumer& consumer) { return consumer.stage > boundary.producer + 1; });
}

bool feeds_a_frozen_stage(const split::Pipe& pipe, const split::Boundary& boundary) {
  return std::any_of(
      boundary.consumers.begin(), boundary.consumers.end(), [&](const split::Boundary::Consumer& consumer) {
        const auto& attributes = pipe.stages[consumer.stage].graph.attributes;
        return !attributes.empty() &&
               std::none_of(attributes.begin(), attributes.end(),
                            [](const graph::Attribute& attribute) { return attribute.tensor.requires_grad(); });
      });
}

/// Removes the gradients of boundaries that only local losses depend on.
bool follow_last_loss_only(split::Pipe& pipe) {
  std::vector<bool> reached(pipe.boundaries.size());
  for (int s = pipe.num_stages() - 1; s >= 0; --s) {
    const split::Stage& stage = pipe.stages[s];
    std::vector<graph::ValueId> roots;
    if (s == pipe.num_stages() - 1) {
      roots = stage.graph.outputs;
      for (const split::LocalLoss& loss : pipe.local_losses)
        if (loss.stage == s) roots[loss.output] = graph::kNoValue;
    }
    for (size_t i = 0; i < stage.outputs.size(); ++i)
      if (reached[stage.outputs[i]]) roots.push_back(stage.graph.outputs[i]);
    const std::vector<char> reach = graph::gradient_reach(stage.graph, roots);
    for (size_t i = 0; i < stage.inputs.size(); ++i)
      if (reach[stage.graph.inputs[i].value] != 0) reached[stage.inputs[i]] = true;
  }
  bool any = false;
  for (size_t b = 0; b < reached.size(); ++b)
    any = (!reached[b] && std::exchange(pipe.boundaries[b].has_gradient, false)) || any;
  return any;
}

Mutant parameters(std::string name, std::string what, std::function<void(int stage, at::Tensor& values)> change,
                  std::vector<Need> needs) {
  return {std::move(name), std::move(what),
          [change = std::move(change)](const FaultSite& site) {
            Fault fault;
            // A stage is built once for training and once for evaluation, with the same parameters.
            fault.stage = [site, change, done = std::set<int>()](int stage, const split::StageState& state,
                                                                 std::unique_ptr<engine::StageRunner> inner) mutable {
              const c10::NoGradGuard no_grad;
              if (!done.insert(stage).second) return inner;
              for (const auto& [parameter, tensor] : state.parameters) {
                at::Tensor values = tensor.detach();
                const at::Tensor before = values.clone();
                change(stage, values);
                if (!same_bytes(before, values)) site.happens();
              }
              return inner;
            };
            return fault;
          },
          std::move(needs)};
}

}  // namespace

std::vector<Mutant> mutants_in_the_pipe() {
  Mutant trained{"evaluation-in-training-mode",
                 "An evaluation runs the model in training mode.",
                 evaluates_as_training,
                 {need::evaluation, {"layers that depend on the training mode", [](const MutantRun& run) {
                                       return run.traits.has_buffers || run.traits.draws_random_numbers;
                                     }}}};
  return {
      pipe("copies-not-summed", "The gradients of a shared parameter's copies are not summed.",
           [](split::Pipe& pipe) { return !std::exchange(pipe.shared, {}).empty(); }, {need::shared_parameters}),
      pipe("skip-without-gradient", "A value that skips stages gets no gradient.", without_gradients(skips)),
      pipe("frozen-stage-stops-gradient", "No gradient flows through a stage whose parameters are all frozen.",
           without_gradients(feeds_a_frozen_stage)),
      pipe("value-without-gradient", "The last value that crosses a boundary gets no gradient.",
           [](split::Pipe& pipe) {
             return !pipe.boundaries.empty() && std::exchange(pipe.boundaries.back().has_gradient, false);
           }),
      pipe("only-last-loss-followed", "A value on which only losses of early stages depend gets no gradient.",
           follow_last_loss_only, {need::training, need::local_losses}),
      std::move(trained),
      parameters("parameters-in-bf16", "A rank loads its parameters from a checkpoint in bf16.",
                 [](int, at::Tensor& values) { values.copy_(values.to(at::kBFloat16)); }, {need::float32}),
      parameters("last-bit-of-parameters", "One element of each parameter of stage 0 is off by its last bit.",
                 [](int stage, at::Tensor& values) {
                   if (stage == 0) flip_last_bit(values);
                 },
                 {}),
  };
}

}  // namespace plumbline::conformance
