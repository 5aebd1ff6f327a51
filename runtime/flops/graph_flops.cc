#include "runtime/flops/graph_flops.h"

#include <algorithm>

#include "runtime/capture/interpose.h"
#include "runtime/flops/flop_constant.h"

namespace plumbline::flops {
namespace {

double elements(const graph::Graph& graph, graph::ValueId v) {
  const graph::Value& value = graph.values[v];
  return value.kind == graph::ValueKind::Tensor ? static_cast<double>(c10::multiply_integers(value.sizes)) : 0;
}

CallSizes sizes_of(const graph::Graph& graph, const graph::Node& node) {
  CallSizes sizes;
  for (const graph::Argument& argument : node.arguments) {
    sizes.constants.push_back(flop_constant(argument.constant));
    std::vector<Sizes>& tensors = sizes.tensors.emplace_back();
    for (graph::ValueId v : argument.values)
      if (v != graph::kNoValue && graph.values[v].kind == graph::ValueKind::Tensor)
        tensors.push_back(graph.values[v].sizes);
  }
  const graph::ValueId first =
      node.results.empty() || node.results[0].values.empty() ? graph::kNoValue : node.results[0].values[0];
  if (first != graph::kNoValue) sizes.result = elements(graph, first);
  return sizes;
}

/// Calls that only view memory, or fill it without reading any.
bool is_free(const graph::Graph& graph, const graph::Node& node) {
  const auto& returns = node.op->schema().returns();
  const bool makes_views = !returns.empty() && std::ranges::all_of(returns, capture::is_view);
  bool reads_tensor = false;
  graph::for_each_use(
      node, [&](graph::ValueId v) { reads_tensor = reads_tensor || graph.values[v].kind == graph::ValueKind::Tensor; });
  return makes_views || !reads_tensor || node.op->schema().name() == "aten::embedding";
}

/// For a cond: the branch that costs more.
double of_costlier_branch(const graph::Node& node, double (*flops)(const graph::Graph&, const graph::Node&)) {
  double most = 0;
  for (const auto& branch : node.branches) {
    double sum = 0;
    for (const graph::Node& inner : branch->nodes) sum += flops(*branch, inner);
    most = std::max(most, sum);
  }
  return most;
}

double elements_of_results(const graph::Graph& graph, const graph::Node& node) {
  double sum = 0;
  graph::for_each_definition(node, [&](graph::ValueId v) { sum += elements(graph, v); });
  return sum;
}

}  // namespace

double estimated_flops(const graph::Graph& graph, const graph::Node& node) {
  if (node.is_split()) return 0;
  if (!node.branches.empty()) return of_costlier_branch(node, &estimated_flops);
  if (const FlopFormula* formula = find_flop_formula(node.op->schema().name()))
    return formula->flops(sizes_of(graph, node));
  return is_free(graph, node) ? 0 : elements_of_results(graph, node);
}

double estimated_backward_flops(const graph::Graph& graph, const graph::Node& node) {
  if (node.is_split() || !node.grad_enabled) return 0;
  if (!node.branches.empty()) return of_costlier_branch(node, &estimated_backward_flops);
  const FlopFormula* formula = find_flop_formula(node.op->schema().name());
  if (!formula) {
    bool gradient = false;
    graph::for_each_definition(node, [&](graph::ValueId v) { gradient = gradient || graph.values[v].requires_grad; });
    return gradient ? estimated_flops(graph, node) : 0;
  }
  int factors = 0;
  for (size_t a : formula->factors)
    for (graph::ValueId v : node.arguments.at(a).values)
      factors += v != graph::kNoValue && graph.values[v].requires_grad;
  return std::min(factors, 2) * estimated_flops(graph, node);
}

std::vector<double> estimated_flops(const graph::Graph& graph) {
  std::vector<double> flops;
  for (const graph::Node& node : graph.nodes)
    flops.push_back(estimated_flops(graph, node) + estimated_backward_flops(graph, node));
  return flops;
}

}  // namespace plumbline::flops
