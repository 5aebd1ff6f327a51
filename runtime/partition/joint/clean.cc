#include "runtime/partition/joint/clean.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <numeric>
#include <string_view>
#include <unordered_set>

#include "runtime/error.h"
#include "runtime/partition/joint/effects.h"

namespace plumbline::partition {
namespace {

using Argument = JointArgument::Kind;

/// `target`, by node: itself to stay, an earlier node that stays to be merged into it, kNoNode to go. Turned into the
/// new indices.
Cleaned rebuild(JointGraph graph, std::vector<NodeIndex> target) {
  const auto n = static_cast<NodeIndex>(graph.nodes.size());
  NodeIndex next = 0;
  for (NodeIndex i = 0; i < n; ++i) {
    if (target[i] == i) {
      target[i] = next++;
    } else if (target[i] != kNoNode) {
      PLUMBLINE_CHECK(target[i] < i, graph.nodes[i].name);
      target[i] = target[target[i]];
    }
  }
  if (next == n) return {std::move(graph), std::move(target)};
  NodeIndex kept = 0;
  for (NodeIndex i = 0; i < n; ++i) {
    JointNode& node = graph.nodes[i];
    if (target[i] != kept) continue;  // gone, or merged into one that stands before
    map_inputs(node, [&](NodeIndex input) {
      PLUMBLINE_CHECK(target[input] != kNoNode, node.name + " reads " + graph.nodes[input].name);
      return target[input];
    });
    if (node.aliases_input != kNoNode) node.aliases_input = target[node.aliases_input];
    if (kept != i) graph.nodes[kept] = std::move(node);
    ++kept;
  }
  graph.nodes.resize(static_cast<size_t>(kept));
  for (NodeIndex& output : graph.outputs) {
    if (output == kNoNode) continue;
    PLUMBLINE_CHECK(target[output] != kNoNode, "an output is gone");
    output = target[output];
  }
  return {std::move(graph), std::move(target)};
}

void forbid(const JointArgument& argument, std::vector<char>& mergeable) {
  if (argument.kind == Argument::Node) mergeable[argument.node] = 0;
  for (const JointArgument& item : argument.items) forbid(item, mergeable);
}

/// By node: it may be replaced by an equal one, or replace one.
std::vector<char> mergeable_nodes(const JointGraph& graph) {
  // torch.fx's list of random packets, and `empty`, whose contents are undefined.
  static const std::unordered_set<std::string_view> apart = {
      "aten::dropout",     "aten::_fused_dropout", "aten::_standard_gamma", "aten::bernoulli",
      "aten::multinomial", "aten::native_dropout", "aten::normal",          "aten::poisson",
      "aten::binomial",    "aten::rrelu",          "aten::rand_like",       "aten::rand",
      "aten::randint",     "aten::randn",          "aten::randperm",        "aten::empty"};
  std::vector<char> output_storage(graph.storage_bytes.size(), 0);
  std::vector<char> mergeable(graph.nodes.size(), 1);
  for (const NodeIndex output : graph.outputs) {
    if (output == kNoNode) continue;
    const JointResult& out = graph.nodes[output].out;
    if (out.kind != JointResult::Kind::Tensor) continue;
    mergeable[output] = 0;
    if (out.storage >= 0) output_storage[out.storage] = 1;
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const JointNode& node = graph.nodes[i];
    const bool call = node.kind == JointKind::Call || node.kind == JointKind::GetItem;
    const bool pure = !node.impure && !node.seeded && !node.writes && !apart.contains(node.op);
    const bool data_dependent = node.data_dependent_output || node.dynamic_output_shape;
    const bool returned =
        node.out.kind == JointResult::Kind::Tensor && node.out.storage >= 0 && output_storage[node.out.storage];
    if (!call || !pure || data_dependent || returned) mergeable[i] = 0;
    if (node.op.starts_with("higher_order::")) {
      // What these write: auto_functionalized_v2 lists it, the others do not say it here.
      const bool lists = node.op == "higher_order::auto_functionalized_v2";
      const bool functionalized = lists || node.op == "higher_order::auto_functionalized" ||
                                  node.op == "higher_order::triton_kernel_wrapper_functional";
      if (functionalized)
        for (const auto& [name, argument] : node.kwargs)
          if (!lists || name == "_all_bases") forbid(argument, mergeable);
    }
  }
  return mergeable;
}

// --- equal calls -----------------------------------------------------------------------------------------------------

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
  return hash ^ (hash >> 32);
}

uint64_t mix(uint64_t hash, const std::string& text) { return mix(hash, std::hash<std::string_view>{}(text)); }

uint64_t mix(uint64_t hash, const JointArgument& argument) {
  hash = mix(hash, static_cast<uint64_t>(argument.kind));
  switch (argument.kind) {
    case Argument::None:
      return hash;
    case Argument::Node:
      return mix(hash, static_cast<uint64_t>(argument.node));
    case Argument::Bool:
    case Argument::Integer:
      return mix(hash, static_cast<uint64_t>(argument.integer));
    case Argument::Float:
    case Argument::Complex:
      return mix(mix(hash, std::bit_cast<uint64_t>(argument.real)), std::bit_cast<uint64_t>(argument.imaginary));
    case Argument::Dtype:
      return mix(hash, static_cast<uint64_t>(argument.dtype));
    case Argument::Layout:
      return mix(hash, static_cast<uint64_t>(argument.layout));
    case Argument::MemoryFormat:
      return mix(hash, static_cast<uint64_t>(argument.memory_format));
    case Argument::Device:
      return mix(mix(hash, static_cast<uint64_t>(argument.device.kind)), static_cast<uint64_t>(argument.device.index));
    case Argument::List:
    case Argument::Slice:
      hash = mix(hash, argument.items.size());
      for (const JointArgument& item : argument.items) hash = mix(hash, item);
      return hash;
    default:
      return mix(hash, argument.text);
  }
}

uint64_t hash_of(const JointNode& node) {
  uint64_t hash = mix(mix(mix(0, node.op), node.overload), node.args.size());
  for (const JointArgument& argument : node.args) hash = mix(hash, argument);
  for (const auto& [name, argument] : node.kwargs) hash = mix(mix(hash, name), argument);
  return hash;
}

bool equal_calls(const JointNode& a, const JointNode& b) {
  return a.kind == b.kind && a.op == b.op && a.overload == b.overload && a.no_grad == b.no_grad &&
         std::ranges::equal(a.args, b.args, equal) &&
         std::ranges::equal(a.kwargs, b.kwargs, [](const auto& one, const auto& other) {
           return one.first == other.first && equal(one.second, other.second);
         });
}

/// The user said what is to become of its result.
bool is_tagged(const JointNode& node) { return node.recompute == CheckpointPolicy::MustSave || must_recompute(node); }

bool contradict(const JointNode& a, const JointNode& b) {
  return is_tagged(a) && is_tagged(b) && must_recompute(a) != must_recompute(b);
}

/// Nodes by the hash of their call: open addressing, never more than half full.
class CallTable {
 public:
  explicit CallTable(size_t calls) : slots_(std::bit_ceil(2 * calls + 1), {0, kNoNode}) {}

  /// The node stored under an equal hash for which `same(node)`; stores `node` and returns it where there is none.
  template <class Same>
  NodeIndex find_or_insert(uint64_t hash, NodeIndex node, Same&& same) {
    for (size_t i = hash & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[i];
      if (slot.node == kNoNode) {
        slot = {hash, node};
        return node;
      }
      if (slot.hash == hash && same(slot.node)) return slot.node;
    }
  }

 private:
  struct Slot {
    uint64_t hash;
    NodeIndex node;
  };
  std::vector<Slot> slots_;
};

/// What lies in the memory of a result that is merged into another lies in the other's from now on.
class MergedStorages {
 public:
  explicit MergedStorages(size_t storages) : now_(storages) { std::iota(now_.begin(), now_.end(), 0); }

  void merge(const JointResult& gone, const JointResult& stays) {
    if (gone.storage >= 0 && stays.storage >= 0) now_[gone.storage] = now_[stays.storage];
    for (size_t i = 0; i < std::min(gone.items.size(), stays.items.size()); ++i) merge(gone.items[i], stays.items[i]);
  }
  void apply(JointResult& result) const {
    if (result.storage >= 0) result.storage = now_[result.storage];
    for (JointResult& item : result.items) apply(item);
  }

 private:
  std::vector<int32_t> now_;
};

}  // namespace

Cleaned keep_nodes(JointGraph graph, const std::vector<char>& keep) {
  PLUMBLINE_CHECK(keep.size() == graph.nodes.size(), std::to_string(keep.size()));
  std::vector<NodeIndex> target(keep.size());
  for (size_t i = 0; i < keep.size(); ++i) target[i] = keep[i] ? static_cast<NodeIndex>(i) : kNoNode;
  return rebuild(std::move(graph), std::move(target));
}

Cleaned remove_dead_nodes(JointGraph graph) {
  std::vector<char> live(graph.nodes.size(), 0);
  for (const NodeIndex output : graph.outputs)
    if (output != kNoNode) live[output] = 1;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const JointNode& node = graph.nodes[i];
    if (node.is_input() || node.impure || node.writes || draws_random_numbers(node)) live[i] = 1;
    if (live[i]) for_each_input(node, [&](NodeIndex input) { live[input] = 1; });
  }
  return keep_nodes(std::move(graph), live);
}

std::vector<char> rules::values_of_gradients(const JointGraph& graph) {
  std::vector<char> needed(graph.nodes.size(), 0);
  for (const NodeIndex output : graph.backward_outputs())
    if (output != kNoNode) needed[output] = 1;
  for (size_t i = graph.nodes.size(); i-- > 0;)
    if (needed[i]) for_each_input(graph.nodes[i], [&](NodeIndex input) { needed[input] = 1; });
  return needed;
}

Cleaned merge_equal_nodes(JointGraph graph, const Policy& policy, MergedTags tags) {
  const std::vector<char> mergeable = mergeable_nodes(graph);
  const std::vector<char> class_of = policy.kept_apart(graph);
  std::vector<NodeIndex> target(graph.nodes.size());
  std::iota(target.begin(), target.end(), 0);
  // Calls before and after one that writes may read different things under one name.
  std::vector<int32_t> writes_before(graph.nodes.size(), 0);
  int32_t writes = 0;
  CallTable table(graph.nodes.size());
  for (NodeIndex i = 0; i < static_cast<NodeIndex>(graph.nodes.size()); ++i) {
    JointNode& node = graph.nodes[i];
    writes_before[i] = writes;
    writes += node.writes;
    map_inputs(node, [&](NodeIndex input) { return target[input]; });
    if (!mergeable[i]) continue;
    target[i] = table.find_or_insert(mix(hash_of(node), static_cast<uint64_t>(writes)), i, [&](NodeIndex other) {
      return writes_before[other] == writes_before[i] && (class_of.empty() || class_of[other] == class_of[i]) &&
             equal_calls(graph.nodes[other], node) &&
             (tags == MergedTags::Lost || !contradict(graph.nodes[other], node));
    });
    if (tags == MergedTags::Kept && target[i] != i && !is_tagged(graph.nodes[target[i]]) && is_tagged(node)) {
      graph.nodes[target[i]].recompute = node.recompute;
      graph.nodes[target[i]].region = node.region;
    }
  }
  MergedStorages storages(graph.storage_bytes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (target[i] != static_cast<NodeIndex>(i)) storages.merge(graph.nodes[i].out, graph.nodes[target[i]].out);
  for (JointNode& node : graph.nodes) storages.apply(node.out);
  return rebuild(std::move(graph), std::move(target));
}

void settle_recompute_tags(JointGraph& graph, bool default_partitioner) {
  if (std::ranges::none_of(graph.nodes, must_recompute)) return;
  const JointEdges edges = edges_of(graph);
  for (NodeIndex i = 0; i < static_cast<NodeIndex>(graph.nodes.size()); ++i) {
    JointNode& node = graph.nodes[i];
    // Readers stand behind, so they still carry what the user said.
    bool recomputed_reader = false, later_region = false;
    for (const NodeIndex user : edges.users(i)) {
      const JointNode& reader = graph.nodes[user];
      if (!must_recompute(reader)) continue;
      recomputed_reader = true;
      later_region |= node.region >= 0 && reader.region > node.region;
    }
    const bool of_region = node.kind == JointKind::GetItem && graph.nodes[node.args[0].node].region >= 0;
    if (must_recompute(node)) {
      if (later_region || (node.backward_hook && !recomputed_reader)) node.recompute = CheckpointPolicy::MustSave;
    } else if (default_partitioner && node.region < 0 && recomputed_reader && !of_region) {
      node.recompute = CheckpointPolicy::MustSave;
    }
  }
}

}  // namespace plumbline::partition
