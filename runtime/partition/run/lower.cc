#include "runtime/partition/run/lower.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "runtime/error.h"
#include "runtime/partition/joint/effects.h"
#include "runtime/partition/joint/overwriting.h"
#include "runtime/partition/run/bind_call.h"
#include "runtime/types/aten.h"

namespace plumbline::partition {
namespace {

/// The device whose generator a random call draws from.
c10::Device device_of(const JointNode& node) {
  const JointResult* result = &node.out;
  while (result->kind == JointResult::Kind::Tuple && !result->items.empty()) result = &result->items.front();
  return types::to_aten(result->device);
}

bool is_number(const JointNode& node) { return node.out.kind == JointResult::Kind::Scalar; }

/// By node: whether it is computed from a tangent.
std::vector<char> reads_tangents(const JointGraph& graph) {
  std::vector<char> reads(graph.nodes.size(), 0);
  for (size_t i = 0; i < reads.size(); ++i) {
    reads[i] = graph.nodes[i].kind == JointKind::Tangent;
    for_each_input(graph.nodes[i], [&](NodeIndex input) { reads[i] = reads[i] || reads[input]; });
  }
  return reads;
}

class Lowering {
 public:
  Lowering(const JointGraph& graph, const std::map<std::string, at::Tensor>& constants,
           std::span<const NodeIndex> replayed)
      : graph_(graph),
        constants_(constants),
        value_of_(graph.nodes.size(), graph::kNoValue),
        returns_of_(graph.nodes.size()),
        state_of_(graph.nodes.size(), -1),
        reads_tangents_(reads_tangents(graph)) {
    for (size_t i = 0; i < replayed.size(); ++i) state_of_[replayed[i]] = static_cast<int32_t>(i);
    hints_.states = replayed.size();
  }

  graph::Program lower(const Subgraph& part) {
    for (const NodeIndex input : part.inputs)
      lowered_.inputs.push_back(
          {graph_.nodes[input].name, is_number(graph_.nodes[input]) ? graph::kNoValue : define(input)});
    for (const NodeIndex op : part.ops) add(op);
    for (const NodeIndex output : part.outputs)
      lowered_.outputs.push_back(output == kNoNode || is_number(graph_.nodes[output]) ? graph::kNoValue
                                                                                      : value_of(output));
    return graph::Program(lowered_, std::move(hints_));
  }

 private:
  /// What a getitem takes an item of: the returns of a call, or the list that one of them is.
  struct Returns {
    int32_t call = -1;
    int32_t list = -1;
    size_t items = 0;  // of that list
  };

  graph::ValueId define(NodeIndex node) {
    const JointResult& out = graph_.nodes[node].out;
    graph::Value value;
    if (out.kind == JointResult::Kind::Tensor) {
      value.dtype = types::to_aten(out.dtype);
      for (const Extent& size : out.shape) value.sizes.push_back(size.value);
      value.storage = out.storage;
    }
    return value_of_[node] = lowered_.add_value(std::move(value));
  }

  graph::ValueId value_of(NodeIndex node) const {
    if (value_of_[node] == graph::kNoValue)
      throw InputError("node '" + graph_.nodes[node].name + "' is used in a part of the graph that does not make it");
    return value_of_[node];
  }

  void add(NodeIndex index) {
    const JointNode& node = graph_.nodes[index];
    if (is_number(node)) return;  // stands for its hint
    switch (node.kind) {
      case JointKind::Call:
        return add_call(index);
      case JointKind::GetItem:
        return add_getitem(index);
      case JointKind::GetAttr:
        return add_constant(index);
      default:
        throw InputError("node '" + node.name + "' is an input, and stands among the calls of a part");
    }
  }

  void add_constant(NodeIndex index) {
    const JointNode& node = graph_.nodes[index];
    const auto constant = constants_.find(node.attribute);
    if (constant == constants_.end())
      throw InputError("node '" + node.name + "': the constant '" + node.attribute + "' is not there");
    graph::Attribute attribute;
    attribute.kind = graph::AttributeKind::Constant;
    attribute.name = node.attribute;
    attribute.tensor = constant->second;
    attribute.value = define(index);
    lowered_.attributes.push_back(std::move(attribute));
  }

  void add_call(NodeIndex index) {
    const JointNode& node = graph_.nodes[index];
    graph::Node call = bind_call(graph_, node, /*any_layout=*/reads_tangents_[index]);
    for (graph::Argument& argument : call.arguments)
      for (graph::ValueId& v : argument.values)
        if (v != kNoNode) v = value_of(v);
    call.grad_enabled = !traced_in_backward(node) && !node.no_grad;
    const size_t position = lowered_.nodes.size();
    const size_t returns = call.op->schema().returns().size();
    call.results.assign(returns, {false, {graph::kNoValue}});
    returns_of_[index].call = static_cast<int32_t>(position);
    if (returns == 1 && is_list(call, 0))
      returns_of_[index] = {static_cast<int32_t>(position), 0, node.out.items.size()};
    else if (!node.multi_output && node.out.kind != JointResult::Kind::Tuple && returns > 0)
      call.results[0].values[0] = define(index);
    if (state_of_[index] >= 0)
      hints_.replayed.push_back({position, static_cast<size_t>(state_of_[index]), device_of(node)});
    if (const int argument = overwritten_argument(graph_, node); argument >= 0)
      if (const auto out = c10::Dispatcher::singleton().findSchema({node.op, "out"}))
        hints_.overwriting.push_back({position, static_cast<uint32_t>(argument), *out});
    hints_.labels.push_back(node.name + " (" + node.op + ")");
    lowered_.nodes.push_back(std::move(call));
  }

  static bool is_list(const graph::Node& call, size_t position) {
    return call.op->schema().returns()[position].type()->kind() == c10::TypeKind::ListType;
  }

  /// The call defines the item itself.
  void add_getitem(NodeIndex index) {
    const JointNode& node = graph_.nodes[index];
    const auto refuse = [&](const std::string& reason) {
      throw InputError("node '" + node.name + "' (getitem) cannot be executed: " + reason);
    };
    if (node.args.size() != 2 || node.args[0].kind != JointArgument::Kind::Node) refuse("it takes no item of a node");
    const Returns from = returns_of_[node.args[0].node];
    if (from.call < 0) refuse("the call before it is in another part of the graph");
    graph::Node& call = lowered_.nodes[from.call];
    const auto item = static_cast<size_t>(node.args[1].integer);
    if (item >= (from.list < 0 ? call.results.size() : from.items)) refuse("there is no such result");
    if (from.list < 0 && is_list(call, item)) {
      returns_of_[index] = {from.call, static_cast<int32_t>(item), node.out.items.size()};
      return;
    }
    graph::Result& result = call.results[from.list < 0 ? item : from.list];
    if (from.list >= 0 && !result.is_list) result = {true, std::vector(from.items, graph::kNoValue)};
    graph::ValueId& value = result.values[from.list < 0 ? 0 : item];
    if (value == graph::kNoValue)
      value = define(index);
    else
      value_of_[index] = value;
  }

  const JointGraph& graph_;
  const std::map<std::string, at::Tensor>& constants_;
  graph::Graph lowered_;
  graph::ExecutionHints hints_;
  std::vector<graph::ValueId> value_of_;  // by node
  std::vector<Returns> returns_of_;       // by node
  std::vector<int32_t> state_of_;         // by node
  std::vector<char> reads_tangents_;      // by node
};

}  // namespace

graph::Program lower(const JointGraph& graph, const Subgraph& part, const std::map<std::string, at::Tensor>& constants,
                     std::span<const NodeIndex> replayed) {
  return Lowering(graph, constants, replayed).lower(part);
}

void run_lowered(const graph::Program& program, std::vector<at::Tensor> inputs, std::vector<at::Tensor>& outputs,
                 const graph::RandomStates& random) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  // The backward runs what it repeats of the forward as the forward did, whatever its caller's grad mode.
  const bool forward = random.mode == graph::RandomStates::Mode::Record;
  const c10::AutoGradMode grad_mode(!forward || c10::GradMode::is_enabled());
  graph::Frame(program).run(std::move(inputs), outputs, random);
}

}  // namespace plumbline::partition
