#include "runtime/backward/split/split_backward.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/functions/basic_ops.h>

#include <set>
#include <unordered_set>

#include "runtime/backward/make_node.h"
#include "runtime/backward/roots.h"
#include "runtime/backward/split/cut.h"
#include "runtime/backward/split/weight_half.h"
#include "runtime/error.h"
#include "runtime/graph/error_text.h"
#include "runtime/graph/graph.h"

namespace plumbline::backward {

using torch::autograd::Edge;
using AutogradNode = torch::autograd::Node;

struct WeightBackward::State {
  std::vector<WeightPart> parts;
  bool pending = false;
  bool retain = false;
  /// The gradients in the seeds, unchanged since their arrival; some belong to the caller.
  std::vector<std::pair<at::Tensor, int64_t>> versions;
  // Only for a retained graph.
  std::unique_ptr<Cut> cut;
  std::vector<std::pair<at::Tensor, Edge>> poisoned;

  ~State() { finish(); }

  void watch_seeds() {
    for (const WeightPart& part : parts)
      for (const Seed& seed : part.seeds)
        for (const at::Tensor& grad : seed.grads)
          if (grad.defined() && !grad.is_inference()) versions.emplace_back(grad, grad._version());
  }
  void check_seeds() {
    for (const auto& [grad, version] : versions)
      if (grad._version() != version)
        throw Error("a gradient (" + graph::describe(grad) +
                    ") that the weight half needs was changed in place after the input half; give each micro-batch "
                    "gradients of its own, and do not change those that came back");
    versions.clear();
  }

  /// The second half is over, or will never run.
  void finish() {
    parts.clear();
    versions.clear();
    cut.reset();
    for (auto& [root, edge] : poisoned) torch::autograd::impl::set_gradient_edge(root, std::move(edge));
    poisoned.clear();
    pending = false;
  }
};

WeightBackward::WeightBackward() = default;
WeightBackward::~WeightBackward() = default;
WeightBackward::WeightBackward(WeightBackward&&) noexcept = default;
WeightBackward& WeightBackward::operator=(WeightBackward&&) noexcept = default;

bool WeightBackward::pending() const { return state_ && state_->pending; }

WeightBackward::State& state_of(WeightBackward& weights) {
  if (!weights.state_) weights.state_ = std::make_unique<WeightBackward::State>();
  return *weights.state_;
}

std::vector<ParamGroup> WeightBackward::groups() const {
  std::vector<ParamGroup> groups;
  if (!pending()) return groups;
  for (const WeightPart& part : state_->parts) {
    ParamGroup group;
    std::vector<const AutogradNode*> open;
    for (const Seed& seed : part.seeds) {
      if (!seed.name.empty()) group.intermediates.push_back(seed.name);
      open.push_back(seed.node.get());
    }
    if (group.intermediates.empty()) continue;  // outputs that no input contributes to
    for (std::unordered_set<const AutogradNode*> seen(open.begin(), open.end()); !open.empty();) {
      const AutogradNode& node = *open.back();
      open.pop_back();
      if (const auto* leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(&node))
        group.params.push_back(leaf->variable);
      for (const Edge& edge : node.next_edges())
        if (edge.is_valid() && seen.insert(edge.function.get()).second) open.push_back(edge.function.get());
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

size_t WeightBackward::held_bytes() const {
  size_t bytes = 0;
  std::set<const void*> counted;
  if (!pending()) return bytes;
  for (const WeightPart& part : state_->parts)
    for (const Seed& seed : part.seeds)
      for (const at::Tensor& grad : seed.grads)
        if (grad.defined() && grad.has_storage() && counted.insert(grad.storage().unsafeGetStorageImpl()).second)
          bytes += grad.storage().nbytes();
  return bytes;
}

namespace {

constexpr const char* kInputHalf = "the input half of stage backward";

/// From now on a backward that begins at one of the roots throws. Leaves and inputs are unchanged: they belong to other
/// graphs too.
void poison(const Roots& roots, const StageInputs& inputs, std::vector<std::pair<at::Tensor, Edge>>* undo) {
  for (size_t i = 0; i < roots.tensors.size(); ++i) {
    const at::Tensor& root = roots.tensors[i];
    if (root.is_leaf() || inputs.contains(roots.edges[i])) continue;
    NodeHandle error = make_node<torch::autograd::Error>(
        "the backward of this output began already, in two halves; another one needs retain_graph, and the weight half "
        "of the first to be over");
    error->add_input_metadata(root);
    torch::autograd::impl::set_gradient_edge(root, Edge(std::move(error), 0));
    if (undo) undo->emplace_back(root, roots.edges[i]);
  }
}

/// Otherwise the first half would defer such a root to the second, and only that would fail.
void refuse_poisoned(const Roots& roots) {
  for (const Edge& edge : roots.edges)
    if (const auto* error = dynamic_cast<const torch::autograd::Error*>(edge.function.get())) throw Error(error->msg);
}

/// A separate part for roots that no input contributes to: it needs no walk, the engine runs it as in a full backward.
std::vector<WeightPart> all_at_once(const Roots& roots) {
  WeightPart part;
  for (size_t i = 0; i < roots.edges.size(); ++i) part.seeds.push_back(seed_at(roots.edges[i], roots.grads[i]));
  std::vector<WeightPart> parts;
  if (!part.seeds.empty()) parts.push_back(std::move(part));
  return parts;
}

void run_input_half(const Roots& roots, std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads,
                    WeightBackward::State& state, const SplitBackwardOptions& options) {
  refuse_poisoned(roots);
  StageInputs stage_inputs(inputs);
  if (stage_inputs.empty()) {
    state.parts = all_at_once(roots);
  } else {
    const GraphWalk walk(roots.edges, stage_inputs);
    WeightParts parts(walk);
    torch::autograd::edge_list edges;
    torch::autograd::variable_list grads;
    std::vector<Seed> weight_roots;
    for (size_t i = 0; i < roots.edges.size(); ++i) {
      const Edge& edge = roots.edges[i];
      if (stage_inputs.contains(edge) || walk.reaches_input(walk.index(edge.function.get()))) {
        edges.push_back(stage_inputs.instead_of(edge));
        grads.push_back(roots.grads[i]);
      } else {
        weight_roots.push_back(seed_at(edge, roots.grads[i]));
      }
    }
    auto cut = std::make_unique<Cut>(walk, stage_inputs, options.retain_graph);
    if (!edges.empty())
      torch::autograd::Engine::get_default_engine().execute(edges, grads, /*keep_graph=*/true, /*create_graph=*/false,
                                                            /*accumulate_grad=*/true);
    state.parts = parts.divide(std::move(weight_roots), cut->turn(), walk);
    if (options.retain_graph) state.cut = std::move(cut);
  }
  state.retain = options.retain_graph;
  state.watch_seeds();
  poison(roots, stage_inputs, options.retain_graph ? &state.poisoned : nullptr);
  stage_inputs.take_grads(input_grads, options.accumulate_into_inputs);
  state.pending = true;
}

/// Restores the graph after a failure.
template <class Gather>
void guarded_input_half(Gather&& gather, std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads,
                        WeightBackward& weights, const SplitBackwardOptions& options) {
  WeightBackward::State& state = state_of(weights);
  if (state.pending) throw Error("the weight half of the backward before was not run");
  try {
    run_input_half(gather(), inputs, input_grads, state, options);
  } catch (...) {
    state.finish();
    throw;
  }
}

}  // namespace

void stage_backward_input(std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                          std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads,
                          WeightBackward& weights, const SplitBackwardOptions& options) {
  PLUMBLINE_CHECK(roots.size() == root_grads.size(),
                  std::to_string(roots.size()) + " roots, " + std::to_string(root_grads.size()) + " gradients");
  try {
    guarded_input_half([&] { return gather_roots(roots, root_grads); }, inputs, input_grads, weights, options);
  } catch (const std::exception& error) {
    throw_backward_failure(kInputHalf, error, debug_text(roots), debug_text(root_grads), debug_text(inputs));
  }
}

InputBackward stage_backward_input(const c10::IValue& output, const c10::IValue& output_grad,
                                   const std::vector<c10::IValue>& inputs, const SplitBackwardOptions& options) {
  InputBackward backward;
  try {
    const std::vector<at::Tensor> tensors = tensors_of(inputs);
    guarded_input_half([&] { return gather_roots(output, output_grad); }, tensors, backward.input_grads,
                       backward.weights, options);
  } catch (const std::exception& error) {
    throw_backward_failure(kInputHalf, error, debug_text(output), debug_text(output_grad), debug_text(inputs));
  }
  return backward;
}

std::vector<at::Tensor> stage_backward_weight(WeightBackward& weights, std::span<const at::Tensor> parameters) {
  WeightBackward::State& state = state_of(weights);
  if (!state.pending)
    throw Error(
        "the weight half of a stage's backward was asked for, but its input half has not run since the last one");
  const bool retain = state.retain;
  try {
    state.check_seeds();
    for (WeightPart& part : state.parts) run(part, retain);
    state.finish();
  } catch (const std::exception& error) {
    state.finish();
    throw Error(std::string("Failed to run the weight half of stage backward: ") + graph::error_text(error));
  }
  std::vector<at::Tensor> grads;
  grads.reserve(parameters.size());
  for (const at::Tensor& parameter : parameters) grads.push_back(parameter.grad());
  return grads;
}

}  // namespace plumbline::backward
