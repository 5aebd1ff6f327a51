#include "runtime/graph/graph.h"

#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <functional>

#include "runtime/error.h"
#include "runtime/graph/dtype_names.h"

namespace plumbline::graph {

void for_each_mutation(const Node& node, const std::function<void(ValueId)>& visit) {
  if (node.is_split()) return;
  const c10::FunctionSchema& schema = node.op->schema();
  const std::string& name = schema.name();
  // (input, weight, bias, running_mean, running_var, training, ...): written in training, without an alias annotation.
  const bool quiet_statistics = (name == "aten::batch_norm" || name == "aten::instance_norm" ||
                                 name == "aten::native_batch_norm" || name == "aten::cudnn_batch_norm") &&
                                node.arguments[5].constant.isBool() && node.arguments[5].constant.toBool();
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
    const bool written = (alias != nullptr && alias->isWrite()) || (quiet_statistics && (i == 3 || i == 4));
    if (!written) continue;
    for (ValueId v : node.arguments[i].values)
      if (v != kNoValue) visit(v);
  }
}

bool draws_random_numbers(const Node& node) {
  for (const auto& branch : node.branches)
    if (std::any_of(branch->nodes.begin(), branch->nodes.end(), &draws_random_numbers)) return true;
  if (node.is_split()) return false;
  if (node.op->schema().name() == "plumbline::set_random_state") return true;
  if (!node.op->hasTag(at::Tag::nondeterministic_seeded)) return false;
  // A drop probability of zero, or evaluation, draws nothing. The kernels native_dropout and _fused_dropout draw
  // always, as does bernoulli, whose p is no drop probability.
  const std::string& op = node.op->schema().name();
  const bool drops_by_p =
      op.find("dropout") != std::string::npos && op != "aten::native_dropout" && op != "aten::_fused_dropout";
  const auto& parameters = node.op->schema().arguments();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = parameters[i].name();
    const c10::IValue& constant = node.arguments[i].constant;
    const bool drop_probability = name == "dropout_p" || name == "dropout" || (name == "p" && drops_by_p);
    if (drop_probability && constant.isDouble() && constant.toDouble() == 0.0) return false;
    if ((name == "train" || name == "training") && constant.isBool() && !constant.toBool()) return false;
  }
  return true;
}

void verify(const Graph& graph) {
  std::vector<char> defined(graph.values.size(), 0);
  auto define = [&](ValueId v, const std::string& where) {
    if (v < 0 || v >= static_cast<ValueId>(graph.values.size()))
      throw Error("graph: " + where + " defines %" + std::to_string(v) + ", which is out of range");
    if (defined[v]) throw Error("graph: " + where + " defines %" + std::to_string(v) + " a second time");
    defined[v] = 1;
  };
  auto use = [&](ValueId v, const std::string& where) {
    if (v < 0 || v >= static_cast<ValueId>(graph.values.size()) || !defined[v])
      throw Error("graph: " + where + " uses %" + std::to_string(v) + ", which nothing before it defines");
  };
  for (const GraphInput& input : graph.inputs) define(input.value, "input \"" + input.name + "\"");
  for (const Attribute& attribute : graph.attributes)
    if (attribute.value != kNoValue) define(attribute.value, "attribute \"" + attribute.name + "\"");
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const std::string where = "node " + std::to_string(i);
    for_each_use(graph.nodes[i], [&](ValueId v) { use(v, where); });
    for_each_definition(graph.nodes[i], [&](ValueId v) { define(v, where); });
  }
  for (ValueId v : graph.outputs)
    if (v != kNoValue) use(v, "the output list");
}

std::string describe(at::ScalarType dtype, at::IntArrayRef sizes) {
  std::string text = dtype_name(dtype) + "[";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i ? "," : "") + std::to_string(sizes[i]);
  return text + "]";
}

std::string describe(const at::Tensor& tensor) {
  return tensor.defined() ? describe(tensor.scalar_type(), tensor.sizes()) : "undefined";
}

}  // namespace plumbline::graph
