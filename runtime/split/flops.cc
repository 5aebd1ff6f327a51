#include "runtime/split/flops.h"

#include <algorithm>

#include "runtime/error.h"
#include "runtime/flop_formulas.h"
#include "runtime/split/node_alone.h"

namespace plumbline::split {
namespace {

double elements(const graph::Graph& graph, graph::ValueId v) {
  const graph::Value& value = graph.values[v];
  return value.kind == graph::ValueKind::Tensor ? static_cast<double>(c10::multiply_integers(value.sizes)) : 0;
}

FlopConstant flop_constant(const c10::IValue& value) {
  if (value.isBool()) return value.toBool();
  if (value.isIntList()) return value.toIntVector();
  if (value.isString()) return value.toStringRef();
  if (!value.isBoolList()) return {};
  const auto flags = value.toBoolList();
  return std::vector<int64_t>(flags.begin(), flags.end());
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

/// What only looks at memory, or fills it without looking at any.
bool is_free(const graph::Graph& graph, const graph::Node& node) {
  const auto& returns = node.op->schema().returns();
  const bool makes_views = !returns.empty() && std::all_of(returns.begin(), returns.end(), [](const c10::Argument& r) {
    return r.alias_info() != nullptr && !r.alias_info()->isWrite();
  });
  bool reads_tensor = false;
  graph::for_each_use(
      node, [&](graph::ValueId v) { reads_tensor = reads_tensor || graph.values[v].kind == graph::ValueKind::Tensor; });
  return makes_views || !reads_tensor || node.op->schema().name() == "aten::embedding";
}

/// Of a cond: the branch that costs more.
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

void FlopCounter::call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const FlopFormula* formula = find_flop_formula(op.operator_name().name);
  if (!formula) return op.callBoxed(stack);
  CallSizes sizes;
  const size_t arguments = op.schema().arguments().size();
  for (size_t a = 0; a < arguments; ++a) {
    const c10::IValue& value = torch::jit::peek(*stack, a, arguments);
    std::vector<Sizes>& tensors = sizes.tensors.emplace_back();
    sizes.constants.push_back(flop_constant(value));
    if (value.isTensor() && value.toTensor().defined()) tensors.push_back(value.toTensor().sizes().vec());
    if (value.isTensorList())
      for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(tensor.sizes().vec());
  }
  op.callBoxed(stack);
  const c10::IValue& result = torch::jit::peek(*stack, 0, op.schema().returns().size());
  if (result.isTensor() && result.toTensor().defined()) sizes.result = static_cast<double>(result.toTensor().numel());
  flops_ += formula->flops(sizes);
}

std::vector<double> measure_flops(const graph::Graph& graph, const std::vector<at::Tensor>& inputs) {
  std::vector<double> flops(graph.nodes.size(), 0);
  for_each_node_alone(graph, inputs, [&](size_t node, NodeAlone& alone) {
    for (const at::Tensor& operand : alone.operands())
      if (!operand.is_cpu() && !operand.is_meta())
        throw InputError("split: operations are counted on the CPU or the meta device, but node " +
                         std::to_string(node) + " reads a tensor on " + operand.device().str());
    FlopCounter counter;
    const capture::InterposerScope counting(counter);
    alone.forward();
    alone.backward(alone.ones());
    flops[node] = counter.flops();
  });
  return flops;
}

}  // namespace plumbline::split
