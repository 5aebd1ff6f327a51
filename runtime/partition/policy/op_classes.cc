// Classifies all nodes in one pass, for all later cuts.
#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include "runtime/partition/policy/op_classes.h"
#include "runtime/partition/policy/policy.h"

namespace plumbline::partition {
namespace {

enum : uint8_t { kRecomputable = 1, kView = 2, kRandom = 4, kComputeIntensive = 8, kCat = 16, kLift = 32 };

/// Hashes the length, and the 8 bytes at each end, which tell operators apart: a graph has one for each node.
struct HashEnds {
  size_t operator()(std::string_view op) const noexcept {
    uint64_t begin = 0, end = 0;
    const size_t length = std::min(op.size(), sizeof(begin)), after_namespace = op.starts_with("aten::") ? 6 : 0;
    std::memcpy(&begin, op.data() + std::min(after_namespace, op.size() - length), length);
    std::memcpy(&end, op.data() + op.size() - length, length);
    return (begin * 31 + end) * 31 + op.size();
  }
};
using ClassesByName = std::unordered_map<std::string_view, uint8_t, HashEnds>;

ClassesByName classes_by_name(const Policy& policy) {
  ClassesByName classes;
  const auto enter = [&](const OpSet& ops, uint8_t bit) {
    for (const std::string& op : ops) classes[op] |= bit;
  };
  enter(policy.recomputable, kRecomputable);
  if (policy.recomputes_pointwise) enter(policy.pointwise, kRecomputable);
  enter(policy.view, kView);
  enter(policy.random, kRandom);
  enter(policy.compute_intensive, kComputeIntensive);
  classes["aten::cat"] |= kCat;
  classes["aten::lift_fresh"] |= kLift;
  classes["aten::lift_fresh_copy"] |= kLift;
  return classes;
}

NodeFacts facts_of(const JointNode& node, uint8_t classes, const Policy& policy) {
  NodeFacts facts{.bytes = cut_bytes(node)};
  facts.input = node.is_input();
  facts.primal = node.kind == JointKind::Primal;
  facts.forward_seed = node.kind == JointKind::ForwardSeed;
  facts.tangent = node.kind == JointKind::Tangent;
  facts.getitem = node.kind == JointKind::GetItem;
  facts.call = facts.getitem || node.kind == JointKind::Call;
  facts.view = (classes & kView) != 0;
  facts.lift = (classes & kLift) != 0;
  facts.collective = is_collective(node);
  facts.effects = has_effects(node);
  facts.only_in_backward = policy.halves.only_in_backward(node);
  facts.must_save = node.recompute == CheckpointPolicy::MustSave;
  facts.must_recompute = must_recompute(node);
  facts.tensor = node.out.kind == JointResult::Kind::Tensor;
  facts.symbolic = node.out.kind == JointResult::Kind::Scalar;
  facts.symbolic_float = facts.symbolic && node.out.dtype == types::Dtype::Float64;
  facts.symbolic_noninteger = facts.symbolic && node.out.dtype != types::Dtype::Int64;
  facts.updated_later = node.epilogue_mutation;
  return facts;
}

}  // namespace

OpClasses classify_ops(const JointGraph& graph, const Policy& policy) {
  const auto by_name = classes_by_name(policy);
  const size_t n = graph.nodes.size();
  OpClasses result;
  for (auto* by_node : {&result.recomputable, &result.random, &result.compute_intensive, &result.fusible, &result.cat})
    by_node->assign(n, 0);
  result.facts.reserve(n);
  result.halves.reserve(n);
  for (size_t i = 0; i < n; ++i) {
    const JointNode& node = graph.nodes[i];
    uint8_t classes = 0;
    if (node.kind == JointKind::Call || node.kind == JointKind::GetItem) {
      const auto found =
          by_name.find(node.kind == JointKind::GetItem ? "operator::getitem" : std::string_view(node.op));
      if (found != by_name.end()) classes = found->second;
    }
    result.recomputable[i] = (classes & kRecomputable) != 0;
    result.random[i] = (classes & kRandom) != 0;
    result.compute_intensive[i] = (classes & kComputeIntensive) != 0;
    result.fusible[i] = (classes & (kRecomputable | kRandom)) != 0;
    result.cat[i] = (classes & kCat) != 0;
    result.facts.push_back(facts_of(node, classes, policy));
    result.halves.push_back(half_marks(node));
  }
  return result;
}

bool reduces(const JointGraph& graph, const JointEdges& edges, NodeIndex index, const OpClasses& ops,
             const Policy& policy) {
  const auto bytes = [&](NodeIndex of) {
    const NodeFacts& facts = ops.facts[of];
    return facts.symbolic_noninteger ? policy.symbolic_noninteger_bytes : facts.bytes;
  };
  int64_t in = 0;
  if (edges.direct[index]) {
    for (const NodeIndex input : edges.inputs(index)) in += bytes(input);
  } else {
    for (const JointArgument& argument : graph.nodes[index].args)
      if (argument.kind == JointArgument::Kind::Node) in += bytes(argument.node);
  }
  return bytes(index) * 4 < in;
}

int64_t cut_bytes(const JointNode& node) {
  const auto tensors = [](const auto& self, const JointResult& out) -> int64_t {
    if (out.kind == JointResult::Kind::Tensor) return out.bytes;
    int64_t sum = 0;
    for (const JointResult& item : out.items) sum += self(self, item);
    return sum;
  };
  return node.out.kind == JointResult::Kind::Scalar ? 1 : tensors(tensors, node.out);
}

}  // namespace plumbline::partition
