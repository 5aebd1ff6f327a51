#include "runtime/partition/joint/joint_flops.h"

#include <algorithm>
#include <exception>
#include <string_view>
#include <unordered_set>

#include "runtime/error.h"
#include "runtime/flops/flop_formulas.h"

namespace plumbline::partition {
namespace {

using namespace flops;

/// The operators that have a formula in torch/utils/flop_counter.py; our table knows more.
bool is_counted(const std::string& op) {
  static const std::unordered_set<std::string> counted{
      // products of matrices
      "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_scaled_mm",
      // convolutions
      "aten::convolution", "aten::_convolution", "aten::convolution_overrideable", "aten::convolution_backward",
      // attention
      "aten::_scaled_dot_product_efficient_attention", "aten::_scaled_dot_product_flash_attention",
      "aten::_scaled_dot_product_flash_attention_for_cpu", "aten::_scaled_dot_product_cudnn_attention",
      "aten::_scaled_dot_product_efficient_attention_backward", "aten::_scaled_dot_product_flash_attention_backward",
      "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
      "aten::_scaled_dot_product_cudnn_attention_backward"};
  return counted.contains(op);
}

Sizes sizes_of(const JointResult& tensor) {
  Sizes sizes;
  for (const Extent& extent : tensor.shape) sizes.push_back(extent.value);
  return sizes;
}

void add_tensors(const JointGraph& graph, const JointArgument& argument, std::vector<Sizes>& tensors) {
  if (argument.kind == JointArgument::Kind::Node && graph.nodes[argument.node].out.kind == JointResult::Kind::Tensor)
    tensors.push_back(sizes_of(graph.nodes[argument.node].out));
  for (const JointArgument& item : argument.items) add_tensors(graph, item, tensors);
}

FlopConstant constant_of(const JointArgument& argument) {
  using Kind = JointArgument::Kind;
  if (argument.kind == Kind::Bool) return argument.integer != 0;
  if (argument.kind == Kind::String) return argument.text;
  if (argument.kind != Kind::List) return {};
  std::vector<int64_t> numbers;
  for (const JointArgument& item : argument.items) numbers.push_back(item.integer);
  return numbers;
}

double elements_of_first(const JointResult& result) {
  if (result.kind == JointResult::Kind::Tuple) return result.items.empty() ? 0 : elements_of_first(result.items[0]);
  double product = 1;
  for (const Extent& extent : result.shape) product *= static_cast<double>(extent.value);
  return product;
}

CallSizes call_sizes(const JointGraph& graph, const JointNode& node) {
  constexpr size_t kMostArguments = 16;  // of any formula, so that one that is missing is found out by its emptiness
  CallSizes call;
  call.tensors.resize(std::max(kMostArguments, node.args.size()));
  call.constants.resize(call.tensors.size());
  for (size_t a = 0; a < node.args.size(); ++a) {
    add_tensors(graph, node.args[a], call.tensors[a]);
    call.constants[a] = constant_of(node.args[a]);
  }
  call.result = elements_of_first(node.out);
  return call;
}

/// FlopCounterMode takes the gradient of a grouped convolution's weight for that of one without groups.
double convolution_backward_flops(const JointNode& node, const FlopFormula& formula, CallSizes call) {
  constexpr size_t kGroups = 9, kMask = 10;
  const std::vector<int64_t> mask = std::get<std::vector<int64_t>>(call.constants[kMask]);
  call.constants[kMask] = std::vector<int64_t>{mask.at(0), 0, 0};
  const double of_input = formula.flops(call);
  call.constants[kMask] = std::vector<int64_t>{0, mask.at(1), 0};
  return of_input + formula.flops(call) * static_cast<double>(node.args.at(kGroups).integer);
}

}  // namespace

double counted_flops(const JointGraph& graph, NodeIndex index) {
  const JointNode& node = graph.nodes[index];
  if (node.kind != JointKind::Call || !is_counted(node.op)) return 1;
  const FlopFormula* formula = find_flop_formula(node.op);
  PLUMBLINE_CHECK(formula, "an operator that counts has a formula: " + node.op);
  try {
    const CallSizes call = call_sizes(graph, node);
    const bool backward = node.op == "aten::convolution_backward";
    return std::max(1.0, backward ? convolution_backward_flops(node, *formula, call) : formula->flops(call));
  } catch (const std::exception&) {  // out of range, or a constant of another kind
    throw InputError("partition: node " + node.name + " does not have the arguments of " + node.op);
  }
}

void count_flops(JointGraph& graph) {
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    graph.nodes[i].flops = counted_flops(graph, static_cast<NodeIndex>(i));
}

}  // namespace plumbline::partition
