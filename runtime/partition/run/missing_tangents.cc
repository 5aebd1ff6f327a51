#include "runtime/partition/run/missing_tangents.h"

#include <algorithm>
#include <utility>

namespace plumbline::partition {
namespace {

/// add(a, b) without a factor: how autograd sums what flows into one value.
bool is_sum(const JointNode& node) {
  return node.kind == JointKind::Call && node.op == "aten::add" && node.overload == "Tensor" && node.args.size() == 2 &&
         node.kwargs.empty() && node.args[0].kind == JointArgument::Kind::Node &&
         node.args[1].kind == JointArgument::Kind::Node;
}

/// Whether a value of one shape and type may stand in the other's place.
bool same_type_and_shape(const JointResult& a, const JointResult& b) {
  return a.dtype == b.dtype && a.shape == b.shape;
}

/// Turns a node into zeros like its result.
void become_zeros(JointNode& node) {
  JointArgument shape{.kind = JointArgument::Kind::List};
  for (const Extent& extent : node.out.shape)
    shape.items.push_back({.kind = JointArgument::Kind::Integer, .integer = extent.value});
  node.kind = JointKind::Call;
  node.op = "aten::zeros";
  node.overload = "default";
  node.args = {std::move(shape)};
  node.kwargs = {{"dtype", {.kind = JointArgument::Kind::Dtype, .dtype = node.out.dtype}},
                 {"device", {.kind = JointArgument::Kind::Device, .device = node.out.device}}};
  node.multi_output = node.view = node.seeded = false;
}

}  // namespace

void drop_tangents(JointGraph& graph, const std::vector<char>& missing) {
  const size_t n = graph.nodes.size();
  // What a node comes to: itself, another node whose value it has, or nothing.
  enum : char { kSomething, kNothing };
  std::vector<char> state(n, kSomething), has_tangent(n, 0);
  std::vector<NodeIndex> stands_for(n);
  size_t tangent = 0;
  for (size_t i = 0; i < n; ++i) {
    JointNode& node = graph.nodes[i];
    stands_for[i] = static_cast<NodeIndex>(i);
    if (node.kind == JointKind::Tangent) {
      has_tangent[i] = 1;
      if (missing.at(tangent++)) state[i] = kNothing;
      continue;
    }
    bool nothing = false, something = false;
    map_inputs(node, [&](NodeIndex input) { return stands_for[input]; });
    for_each_input(node, [&](NodeIndex input) {
      if (!has_tangent[input]) return;
      has_tangent[i] = 1;
      (state[input] == kNothing ? nothing : something) = true;
    });
    if (!nothing) continue;
    if (!something) {
      state[i] = kNothing;
      continue;
    }
    if (is_sum(node)) {
      const NodeIndex left = node.args[0].node, right = node.args[1].node;
      const NodeIndex kept = state[left] == kNothing ? right : left;
      if (same_type_and_shape(graph.nodes[kept].out, node.out)) {
        stands_for[i] = kept;
        continue;
      }
    }
    for_each_input(node, [&](NodeIndex input) {
      JointNode& read = graph.nodes[input];
      if (state[input] == kNothing && read.op != "aten::zeros" && !read.is_input()) become_zeros(read);
    });
  }
  for (size_t i = graph.num_forward_outputs; i < graph.outputs.size(); ++i) {
    NodeIndex& output = graph.outputs[i];
    if (output == kNoNode) continue;
    output = stands_for[output];
    if (state[output] == kNothing) output = kNoNode;
  }
}

std::vector<NodeIndex> live_ops(const JointGraph& graph, const std::vector<NodeIndex>& ops,
                                const std::vector<NodeIndex>& outputs) {
  std::vector<char> needed(graph.nodes.size(), 0);
  for (const NodeIndex output : outputs)
    if (output != kNoNode) needed[output] = 1;
  std::vector<NodeIndex> live;
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    if (!needed[*op]) continue;
    live.push_back(*op);
    for_each_input(graph.nodes[*op], [&](NodeIndex input) { needed[input] = 1; });
  }
  std::reverse(live.begin(), live.end());
  return live;
}

}  // namespace plumbline::partition
