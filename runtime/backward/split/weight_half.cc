#include "runtime/backward/split/weight_half.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/engine.h>

#include <utility>

#include "runtime/backward/make_node.h"

namespace plumbline::backward {

using torch::autograd::Edge;
using torch::autograd::Node;
using torch::autograd::variable_list;

WeightParts::WeightParts(const GraphWalk& walk) {
  const int count = static_cast<int>(walk.nodes().size());
  parent_.resize(count);
  for (int i = 0; i < count; ++i) parent_[i] = i;
  is_shared_.resize(count);
  has_parent_.resize(count);
  for (int i = 0; i < count; ++i) {
    if (walk.reaches_input(i)) continue;
    Node& node = *walk.nodes()[i];
    if (!node.device().is_cpu()) is_shared_[i] = 1;
    for (const Edge& edge : std::as_const(node).next_edges()) {
      if (!edge.is_valid()) continue;
      const int child = walk.index(edge.function.get());
      is_shared_[child] = is_shared_[child] || has_parent_[child];
      has_parent_[child] = 1;
      unite(i, child);
    }
  }
}

int WeightParts::find(int index) {
  while (parent_[index] != index) index = parent_[index] = parent_[parent_[index]];
  return index;
}

std::vector<WeightPart> WeightParts::divide(std::vector<Seed> roots, std::vector<Seed> frontier,
                                            const GraphWalk& walk) {
  // Visits the nodes of P that a seed feeds directly.
  const auto for_each_target = [&](const Seed& seed, bool is_root, auto&& visit) {
    if (is_root) return visit(walk.index(seed.node.get()));
    for (const Edge& edge : std::as_const(*seed.node).next_edges())
      if (edge.is_valid()) visit(walk.index(edge.function.get()));
  };
  const auto add_edges = [&](const Seed& seed, bool is_root) {
    int first = -1;
    for_each_target(seed, is_root, [&](int target) {
      is_shared_[target] = is_shared_[target] || has_parent_[target];
      has_parent_[target] = 1;
      if (first >= 0) unite(first, target);
      first = target;
    });
  };
  for (const Seed& seed : roots) add_edges(seed, true);
  for (const Seed& seed : frontier) add_edges(seed, false);

  std::vector<char> has_shared(parent_.size());
  for (size_t i = 0; i < parent_.size(); ++i)
    if (is_shared_[i]) has_shared[find(static_cast<int>(i))] = 1;

  std::vector<WeightPart> parts;
  std::vector<int> part_of(parent_.size(), -1);
  const auto add = [&](Seed& seed, bool is_root) {
    int target = -1;
    for_each_target(seed, is_root, [&](int t) { target = find(t); });
    int& part = part_of[target];
    if (part < 0) {
      part = static_cast<int>(parts.size());
      parts.push_back({{}, !has_shared[target] && seed.node->device().is_cpu()});
    } else {
      parts[part].is_tree = false;
    }
    parts[part].seeds.push_back(std::move(seed));
  };
  for (Seed& seed : roots) add(seed, true);
  for (Seed& seed : frontier) add(seed, false);
  return parts;
}

Seed seed_at(const Edge& edge, at::Tensor grad) {
  Seed seed{edge.function, variable_list(edge.function->num_inputs()), {}};
  seed.grads[edge.input_nr] = std::move(grad);
  return seed;
}

namespace {

/// The engine cannot start from an undefined gradient, but it passes on one that a node returned.
class Nothing : public Node {
 public:
  explicit Nothing(const NodeHandle& before) {
    input_metadata_.emplace_back(before->input_metadata(0));
    for (uint32_t i = 0; i < before->num_inputs(); ++i) next_edges().emplace_back(before, i);
  }
  variable_list apply(variable_list&&) override { return variable_list(num_outputs()); }
};

/// Where the engine starts to execute the nodes of seeds, and with which gradients.
struct Start {
  torch::autograd::edge_list edges;
  variable_list grads;

  void add(const NodeHandle& node, variable_list&& from) {
    const size_t before = edges.size();
    for (uint32_t i = 0; i < from.size(); ++i) {
      if (!from[i].defined()) continue;
      edges.emplace_back(node, i);
      grads.push_back(std::move(from[i]));
    }
    if (edges.size() > before) return;
    const torch::autograd::InputMetadata& like = node->input_metadata(0);
    edges.emplace_back(make_node<Nothing>(node), 0);
    grads.push_back(at::zeros({}, like.options()).expand_symint(like.shape_as_dim_vector()));
  }
  void run(bool retain) const {
    torch::autograd::Engine::get_default_engine().execute(edges, grads, retain, /*create_graph=*/false,
                                                          /*accumulate_grad=*/true);
  }
};

bool has_hooks(Node& node) {
  return !node.pre_hooks().empty() || !node.tensor_pre_hooks().empty() || !node.retains_grad_hooks().empty() ||
         !node.post_hooks().empty() || node.tensor_post_acc_grad_hooks();
}

/// The engine's execution of a node without hooks, except for streams.
variable_list execute(Node& node, variable_list grads, bool retain) {
  if (!retain) node.will_release_variables();
  variable_list outputs = node(std::move(grads));
  if (!retain) node.release_variables();
  if (node.num_outputs() > 0)
    torch::autograd::validate_outputs(std::as_const(node).next_edges(), outputs, [&](const std::string& text) {
      return "Function " + node.name() + " returned an " + text;
    });
  return outputs;
}

/// Runs a part without queues, maps and counters; without sums the order does not matter. A hook may call the engine,
/// so a part with hooks is left to the engine.
void run_tree(Seed seed, bool retain) {
  const c10::AutoGradMode no_grad(false);
  std::vector<std::pair<NodeHandle, variable_list>> ready;
  ready.emplace_back(std::move(seed.node), std::move(seed.grads));
  while (!ready.empty()) {
    auto [node, grads] = std::move(ready.back());
    ready.pop_back();
    if (has_hooks(*node)) {
      Start start;
      start.add(node, std::move(grads));
      start.run(retain);
      continue;
    }
    variable_list outputs = execute(*node, std::move(grads), retain);
    const torch::autograd::edge_list& edges = std::as_const(*node).next_edges();
    for (size_t e = 0; e < edges.size(); ++e) {
      if (!edges[e].is_valid()) continue;
      variable_list next(edges[e].function->num_inputs());
      next[edges[e].input_nr] = std::move(outputs[e]);
      ready.emplace_back(edges[e].function, std::move(next));
    }
  }
}

}  // namespace

void run(WeightPart& part, bool retain) {
  // Inside another backward should_compute_output() would answer for that backward's edges.
  const bool engine_is_busy = torch::autograd::get_current_graph_task_id() != -1;
  if (part.is_tree && !engine_is_busy && !torch::autograd::AnomalyMode::is_enabled()) {
    run_tree(std::move(part.seeds.front()), retain);
    return;
  }
  Start start;
  for (Seed& seed : part.seeds) start.add(seed.node, std::move(seed.grads));
  part.seeds.clear();
  start.run(retain);
}

}  // namespace plumbline::backward
