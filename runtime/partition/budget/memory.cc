#include "runtime/partition/budget/memory.h"

#include <algorithm>
#include <span>

#include "runtime/partition/budget/result_memory.h"
#include "runtime/partition/joint/overwriting.h"

namespace plumbline::partition {
namespace {

/// Allocated memory, which several results may share.
struct Block {
  int64_t bytes = 0;
  int32_t results = 0;
};

class Run {
 public:
  Run(const JointGraph& graph, const JointEdges& edges, bool overwriting)
      : graph_(graph),
        edges_(edges),
        overwriting_(overwriting),
        memory_(graph, edges),
        block_(memory_.shares.size(), 0),
        last_use_(graph.nodes.size(), kNever) {}

  MemoryProfile both(const Subgraph& forward, const Subgraph& backward) {
    profile_.bytes.reserve(forward.ops.size() + backward.ops.size());
    for (const NodeIndex input : forward.inputs) make(input);
    part(forward);
    // Returned values stay alive, and are held twice if they are both an output and saved.
    const std::span<const NodeIndex> returned(forward.outputs);
    const auto saved = returned.subspan(std::min<size_t>(graph_.num_forward_outputs, returned.size()));
    profile_.backward_begin = profile_.bytes.size();
    profile_.between = held_;
    count_saved(saved);
    for (const NodeIndex output : returned.first(returned.size() - saved.size()))
      if (output != kNoNode) hold(output);
    for (const NodeIndex input : backward.inputs)
      if (graph_.nodes[input].kind == JointKind::Tangent) make(input);
    part(backward);
    profile_.peak = profile_.between;
    for (size_t i = 0; i < profile_.bytes.size(); ++i)
      if (profile_.bytes[i] > profile_.peak) profile_.peak = profile_.bytes[i], profile_.peak_at = i;
    return std::move(profile_);
  }

 private:
  static constexpr int32_t kNever = -1, kAlways = INT32_MAX;

  /// Runs the calls of one half, whose inputs exist. Afterwards only its returned values are held.
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

  /// The input that dies at this call, is alone in its memory and gives it to the result; kNoNode if there is none.
  NodeIndex overwritten_by(NodeIndex op, int32_t at) const {
    const int argument = overwritten_argument(graph_, graph_.nodes[op]);
    if (argument < 0) return kNoNode;
    const NodeIndex input = graph_.nodes[op].args[argument].node;
    const int32_t result = memory_.begin(input);
    const bool counted = memory_.bytes[result] > 0;
    return counted && last_use_[input] == at && blocks_[block_[result]].results == 1 ? input : kNoNode;
  }

  /// Creates an input, or the results of a call. A recomputed value gets its own memory.
  void make(NodeIndex node) {
    for (int32_t r = memory_.begin(node); r < memory_.end(node); ++r) {
      if (memory_.shares[r] == r) {
        block_[r] = static_cast<int32_t>(blocks_.size());
        blocks_.push_back({.bytes = memory_.bytes[r]});
      } else {
        block_[r] = block_[memory_.shares[r]];
      }
    }
    hold(node);
  }

  void hold(NodeIndex node) {
    for (int32_t r = memory_.begin(node); r < memory_.end(node); ++r)
      if (blocks_[block_[r]].results++ == 0) held_ += blocks_[block_[r]].bytes;
  }
  void release(NodeIndex node) {
    for (int32_t r = memory_.begin(node); r < memory_.end(node); ++r)
      if (--blocks_[block_[r]].results == 0) held_ -= blocks_[block_[r]].bytes;
  }

  void count_saved(std::span<const NodeIndex> saved) {
    std::vector<char> counted = storages_held_anyway(graph_);
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
  const ResultMemory memory_;
  /// All blocks ever made; the first stands for memory that is not counted.
  std::vector<Block> blocks_ = std::vector<Block>(1);
  std::vector<int32_t> block_;     ///< by result, for its latest computation
  std::vector<int32_t> last_use_;  ///< by node: position in the half that runs
  int64_t held_ = 0;
  MemoryProfile profile_;
};

}  // namespace

MemoryProfile simulate_memory(const JointGraph& graph, const JointEdges& edges, const Subgraph& forward,
                              const Subgraph& backward, bool overwriting) {
  return Run(graph, edges, overwriting).both(forward, backward);
}

MemoryProfile simulate_memory(const Partition& partition, bool overwriting) {
  return simulate_memory(partition.graph, edges_of(partition.graph), partition.forward, partition.backward,
                         overwriting);
}

}  // namespace plumbline::partition
