#include "runtime/partition/joint/joint_graph.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <unordered_set>

#include "runtime/error.h"

namespace plumbline::partition {
namespace {

[[noreturn]] void refuse(const JointNode& node, const std::string& wrong) {
  throw InputError("node '" + node.name + "' " + wrong);
}

/// Sums of bytes are made everywhere; up to here they, and a few of them together, are numbers.
constexpr int64_t kMostBytes = int64_t{1} << 60;

void verify_result(const JointGraph& graph, const JointNode& node, const JointResult& out, int64_t& bytes) {
  if (out.kind == JointResult::Kind::Tensor) {
    if (out.shape.size() != out.strides.size())
      refuse(node, "has " + std::to_string(out.shape.size()) + " sizes and " + std::to_string(out.strides.size()) +
                       " strides, expected one stride for each size");
    if (out.bytes < 0) refuse(node, "has " + std::to_string(out.bytes) + " bytes, expected 0 or more");
    if (out.bytes > kMostBytes - bytes)
      refuse(node, "brings the bytes of all results above 2^60, expected at most so many");
    bytes += out.bytes;
    const auto storages = static_cast<int64_t>(graph.storage_bytes.size());
    if (out.storage < -1 || out.storage >= storages)
      refuse(node, "lies in storage " + std::to_string(out.storage) + ", expected one of the " +
                       std::to_string(storages) + " of the graph, or -1");
  }
  for (const JointResult& item : out.items) verify_result(graph, node, item, bytes);
}

/// Both are tuples of as many items of the same structure, or neither is one.
bool same_structure(const JointResult& a, const JointResult& b) {
  using Kind = JointResult::Kind;
  if (a.kind != Kind::Tuple || b.kind != Kind::Tuple) return (a.kind == Kind::Tuple) == (b.kind == Kind::Tuple);
  return std::ranges::equal(a.items, b.items, same_structure);
}

/// A getitem names a result of a call before it, which `verify` has already seen to.
void verify_getitem(const JointGraph& graph, const JointNode& node) {
  using Kind = JointArgument::Kind;
  if (node.args.size() != 2 || node.args[0].kind != Kind::Node || node.args[1].kind != Kind::Integer)
    refuse(node, "is a getitem, whose arguments must be a node and the number of its result");
  const JointNode& call = graph.nodes[node.args[0].node];
  if (!call.multi_output) refuse(node, "takes a result of '" + call.name + "', which is no call of several results");
  const int64_t results = static_cast<int64_t>(call.out.items.size());
  const int64_t item = node.args[1].integer;
  if (call.out.kind == JointResult::Kind::Tuple && (item < 0 || item >= results))
    refuse(node, "takes result " + std::to_string(item) + " of '" + call.name + "', which has " +
                     std::to_string(results) + ", counted from 0");
  if (call.out.kind == JointResult::Kind::Tuple && !same_structure(node.out, call.out.items[item]))
    refuse(node, "is not made as result " + std::to_string(item) + " of '" + call.name +
                     "' is: expected a tuple of as many results where that is one");
}

}  // namespace

bool equal(const JointArgument& a, const JointArgument& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.layout == b.layout && a.memory_format == b.memory_format &&
         a.device == b.device && a.node == b.node && a.integer == b.integer &&
         std::bit_cast<uint64_t>(a.real) == std::bit_cast<uint64_t>(b.real) &&
         std::bit_cast<uint64_t>(a.imaginary) == std::bit_cast<uint64_t>(b.imaginary) && a.text == b.text &&
         std::ranges::equal(a.items, b.items, equal);
}

JointEdges edges_of(const JointGraph& graph) {
  const size_t n = graph.nodes.size();
  JointEdges edges;
  edges.input_begin.reserve(n + 1);
  edges.user_begin.assign(n + 1, 0);
  edges.is_output.assign(n, 0);
  edges.direct.assign(n, 0);
  std::vector<NodeIndex> seen_by(n, kNoNode);
  for (size_t i = 0; i < n; ++i) {
    const JointNode& node = graph.nodes[i];
    edges.input_begin.push_back(static_cast<int32_t>(edges.input.size()));
    int64_t reads = 0;
    for_each_input(node, [&](NodeIndex input) {
      ++reads;
      if (seen_by[input] == static_cast<NodeIndex>(i)) return;
      seen_by[input] = static_cast<NodeIndex>(i);
      edges.input.push_back(input);
      ++edges.user_begin[input + 1];
    });
    edges.direct[i] = reads == std::ranges::count(node.args, JointArgument::Kind::Node, &JointArgument::kind) &&
                      reads == std::ssize(edges.input) - edges.input_begin.back();
  }
  edges.input_begin.push_back(static_cast<int32_t>(edges.input.size()));
  for (size_t i = 0; i < n; ++i) edges.user_begin[i + 1] += edges.user_begin[i];
  edges.user.resize(edges.input.size());
  std::vector<int32_t> next(edges.user_begin.begin(), edges.user_begin.end() - 1);
  for (size_t i = 0; i < n; ++i)
    for (const NodeIndex input : edges.inputs(static_cast<NodeIndex>(i)))
      edges.user[next[input]++] = static_cast<NodeIndex>(i);
  for (const NodeIndex output : graph.outputs)
    if (output != kNoNode) edges.is_output[output] = 1;
  return edges;
}

std::vector<NodeIndex> inputs_of_kind(const JointGraph& graph, JointKind kind) {
  std::vector<NodeIndex> found;
  for (size_t i = 0; i < graph.nodes.size() && graph.nodes[i].is_input(); ++i)
    if (graph.nodes[i].kind == kind) found.push_back(static_cast<NodeIndex>(i));
  return found;
}

void verify(const JointGraph& graph) {
  const auto n = static_cast<NodeIndex>(graph.nodes.size());
  std::unordered_set<std::string_view> names;
  names.reserve(graph.nodes.size());
  const JointNode* first_inner = nullptr;
  int64_t bytes = 0, stored = 0;
  for (NodeIndex i = 0; i < n; ++i) {
    const JointNode& node = graph.nodes[i];
    if (node.name.empty()) throw InputError("node " + std::to_string(i) + " has no name");
    if (!names.insert(node.name).second) refuse(node, "stands twice, expected a name of its own for each node");
    if (!node.is_input() && first_inner == nullptr) first_inner = &node;
    if (node.is_input() && first_inner != nullptr)
      refuse(node, "is an input and comes after '" + first_inner->name + "', expected inputs before everything else");
    for_each_input(node, [&](NodeIndex input) {
      if (input < 0 || input >= n) refuse(node, "reads node " + std::to_string(input) + ", which does not exist");
      if (input >= i)
        refuse(node,
               "reads '" + graph.nodes[input].name + "', which does not come before it: the order must be topological");
    });
    const NodeIndex alias = node.aliases_input;
    if (alias != kNoNode && (alias < 0 || alias >= n || !graph.nodes[alias].is_input()))
      refuse(node, "aliases an input that does not exist");
    if (node.multi_output && node.out.kind != JointResult::Kind::Tuple)
      refuse(node, "is said to give several results, and its result is no tuple");
    if (node.kind == JointKind::GetItem) verify_getitem(graph, node);
    verify_result(graph, node, node.out, bytes);
  }
  for (const NodeIndex output : graph.outputs)
    if (output != kNoNode && (output < 0 || output >= n))
      throw InputError("an output is node " + std::to_string(output) + ", which does not exist");
  if (graph.num_forward_outputs < 0 || graph.num_forward_outputs > static_cast<int>(graph.outputs.size()))
    throw InputError(std::to_string(graph.num_forward_outputs) +
                     " outputs are said to be the forward's, expected 0 to " + std::to_string(graph.outputs.size()) +
                     ", all that there are");
  for (size_t k = 0; k < graph.storage_bytes.size(); ++k) {
    const int64_t size = graph.storage_bytes[k];
    if (size < 0)
      throw InputError("storage " + std::to_string(k) + " has " + std::to_string(size) + " bytes, expected 0 or more");
    if (size > kMostBytes - stored)
      throw InputError("storage " + std::to_string(k) + " of " + std::to_string(size) +
                       " bytes brings all storages above 2^60 bytes, expected at most so many");
    stored += size;
  }
}

}  // namespace plumbline::partition
