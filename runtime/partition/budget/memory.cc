#include "runtime/partition/budget/memory.h"

#include <algorithm>
#include <span>

#include "runtime/error.h"
#include "runtime/partition/joint/overwriting.h"

namespace plumbline {
namespace {

/// Memory that is there: several values may share it.
struct Block {
  int64_t bytes = 0;
  int32_t values = 0;
};
constexpr int32_t kUncounted = -1;

class Run {
 public:
  Run(const JointGraph& graph, const JointEdges& edges, bool overwriting)
      : graph_(graph),
        edges_(edges),
        overwriting_(overwriting),
        held_anyway_(storages_held_anyway(graph)),
        begin_(graph.nodes.size(), 0),
        end_(graph.nodes.size(), 0),
        last_use_(graph.nodes.size(), kNever) {}

  MemoryProfile both(const Subgraph& forward, const Subgraph& backward) {
    profile_.bytes.reserve(forward.ops.size() + backward.ops.size());
    for (const NodeIndex input : forward.inputs) give(input);
    part(forward);
    // What is returned stays, twice over where a value is an output and saved.
    const std::span<const NodeIndex> returned(forward.outputs);
    const auto saved = returned.subspan(std::min<size_t>(graph_.num_forward_outputs, returned.size()));
    profile_.backward_begin = profile_.bytes.size();
    profile_.between = held_;
    count_saved(saved);
    for (const NodeIndex output : returned.first(returned.size() - saved.size()))
      if (output != kNoNode) hold(output);
    for (const NodeIndex input : backward.inputs)
      if (graph_.nodes[input].kind == JointKind::Tangent) give(input);
    part(backward);
    profile_.peak = profile_.between;
    for (size_t i = 0; i < profile_.bytes.size(); ++i)
      if (profile_.bytes[i] > profile_.peak) profile_.peak = profile_.bytes[i], profile_.peak_at = i;
    return std::move(profile_);
  }

 private:
  static constexpr int32_t kNever = -1, kAlways = INT32_MAX;

  /// Runs the calls of one part; its inputs are there. Afterwards only what it returns is.
  void part(const Subgraph& part) {
    const auto ops = static_cast<int32_t>(part.ops.size());
    for (const NodeIndex input : part.inputs) last_use_[input] = kNever;
    for (const NodeIndex op : part.ops) last_use_[op] = kNever;
    for (int32_t at = 0; at < ops; ++at)
      for (const NodeIndex input : edges_.inputs(part.ops[at])) last_use_[input] = at;
    for (const NodeIndex output : part.outputs)
      if (output != kNoNode) last_use_[output] = kAlways;
    for (const NodeIndex input : part.inputs)
      if (last_use_[input] == kNever) release(input);
    for (int32_t at = 0; at < ops; ++at) {
      const NodeIndex op = part.ops[at];
      const NodeIndex overwritten = overwriting_ ? overwritten_by(op, at) : kNoNode;
      if (overwritten != kNoNode) release(overwritten);
      make(op);
      profile_.bytes.push_back(held_);
      for (const NodeIndex input : edges_.inputs(op))
        if (last_use_[input] == at && input != overwritten) release(input);
      if (last_use_[op] == kNever) release(op);
    }
  }

  /// The input that ends there alone in its memory, and gives it to the result; kNoNode: none.
  NodeIndex overwritten_by(NodeIndex op, int32_t at) const {
    const int argument = overwritten_argument(graph_, graph_.nodes[op]);
    if (argument < 0) return kNoNode;
    const NodeIndex input = graph_.nodes[op].args[argument].node;
    const int32_t block = blocks_of_[begin_[input]];
    return last_use_[input] == at && block != kUncounted && blocks_[block].values == 1 ? input : kNoNode;
  }

  /// A value from outside.
  void give(NodeIndex node) {
    begin_[node] = static_cast<int32_t>(blocks_of_.size());
    new_blocks(graph_.nodes[node].out, {});
    end_[node] = static_cast<int32_t>(blocks_of_.size());
    hold(node);
  }

  /// The result of a call.
  void make(NodeIndex op) {
    const JointNode& node = graph_.nodes[op];
    const std::span<const NodeIndex> inputs = edges_.inputs(op);
    const auto begin = static_cast<int32_t>(blocks_of_.size());
    if (node.kind == JointKind::GetItem) {
      const NodeIndex tuple = inputs[0];
      const int64_t item = begin_[tuple] + node.args[1].integer;
      PLUMBLINE_CHECK(item < end_[tuple], "getitem beyond its tuple: " + node.name);
      blocks_of_.push_back(blocks_of_[item]);
    } else {
      new_blocks(node.out, inputs);
    }
    begin_[op] = begin;
    end_[op] = static_cast<int32_t>(blocks_of_.size());
    hold(op);
  }

  void new_blocks(const JointResult& result, std::span<const NodeIndex> inputs) {
    if (result.kind == JointResult::Kind::Tuple) {
      for (const JointResult& item : result.items) blocks_of_.push_back(block_for(item, inputs));
    } else {
      blocks_of_.push_back(block_for(result, inputs));
    }
  }

  int32_t block_for(const JointResult& result, std::span<const NodeIndex> inputs) {
    if (result.kind != JointResult::Kind::Tensor) return kUncounted;
    if (result.storage >= 0) {
      if (held_anyway_[result.storage]) return kUncounted;
      for (const NodeIndex input : inputs)
        if (graph_.nodes[input].out.kind == JointResult::Kind::Tensor &&
            graph_.nodes[input].out.storage == result.storage)
          return blocks_of_[begin_[input]];
    }
    blocks_.push_back({.bytes = result.storage >= 0 ? graph_.storage_bytes[result.storage] : result.bytes});
    return static_cast<int32_t>(blocks_.size()) - 1;
  }

  void hold(NodeIndex node) {
    for (int32_t i = begin_[node]; i < end_[node]; ++i)
      if (blocks_of_[i] != kUncounted && blocks_[blocks_of_[i]].values++ == 0) held_ += blocks_[blocks_of_[i]].bytes;
  }
  void release(NodeIndex node) {
    for (int32_t i = begin_[node]; i < end_[node]; ++i)
      if (blocks_of_[i] != kUncounted && --blocks_[blocks_of_[i]].values == 0) held_ -= blocks_[blocks_of_[i]].bytes;
  }

  void count_saved(std::span<const NodeIndex> saved) {
    std::vector<char> counted = held_anyway_;
    for (const NodeIndex node : saved) {
      const JointResult& out = graph_.nodes[node].out;
      if (out.kind != JointResult::Kind::Tensor) continue;
      profile_.saved_nodes += out.bytes;
      if (out.storage < 0) {
        profile_.saved_storage += out.bytes;
      } else if (!counted[out.storage]) {
        counted[out.storage] = 1;
        profile_.saved_storage += graph_.storage_bytes[out.storage];
      }
    }
  }

  const JointGraph& graph_;
  const JointEdges& edges_;
  const bool overwriting_;
  const std::vector<char> held_anyway_;
  std::vector<Block> blocks_;
  std::vector<int32_t> blocks_of_;    ///< of all values that were ever made; of a node: begin_ to end_
  std::vector<int32_t> begin_, end_;  ///< by node, of its latest making
  std::vector<int32_t> last_use_;     ///< by node: position in the part that runs
  int64_t held_ = 0;
  MemoryProfile profile_;
};

}  // namespace

std::vector<char> storages_held_anyway(const JointGraph& graph) {
  std::vector<char> held(graph.storage_bytes.size(), 0);
  for (const JointNode& node : graph.nodes)
    if ((node.is_input() && node.kind != JointKind::Tangent) || node.kind == JointKind::GetAttr)
      if (node.out.kind == JointResult::Kind::Tensor && node.out.storage >= 0) held[node.out.storage] = 1;
  return held;
}

MemoryProfile simulate_memory(const JointGraph& graph, const JointEdges& edges, const Subgraph& forward,
                              const Subgraph& backward, bool overwriting) {
  return Run(graph, edges, overwriting).both(forward, backward);
}

MemoryProfile simulate_memory(const Partition& partition, bool overwriting) {
  return simulate_memory(partition.graph, edges_of(partition.graph), partition.forward, partition.backward,
                         overwriting);
}

}  // namespace plumbline
