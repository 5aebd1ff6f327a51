#include "runtime/partition/parity/statistics.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "runtime/partition/cut/min_cut.h"
#include "runtime/text/join.h"
#include "runtime/text/significant.h"

namespace plumbline::partition {
namespace {

/// Whether the call is an operator packet of the dispatcher; Python's own operators, torch.sym_* and higher-order
/// operators are not.
bool is_packet(const JointNode& node) {
  if (node.kind != JointKind::Call) return false;
  for (const char* own : {"operator::", "torch::", "higher_order::", "math::"})
    if (node.op.starts_with(own)) return false;
  return true;
}

bool is_call(const JointNode& node) { return node.kind == JointKind::Call || node.kind == JointKind::GetItem; }

/// "aten::mm" in Python's notation.
std::string python_name(std::string op) {
  const size_t colons = op.find("::");
  return colons == std::string::npos ? op : op.replace(colons, 2, ".");
}

}  // namespace

PartitionStatistics statistics_of(const Partition& partition, const Policy& policy) {
  const JointGraph& graph = partition.graph;
  PartitionStatistics statistics;
  const OpClasses classes = classify_ops(graph, policy);
  std::unordered_set<std::string> named;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (is_packet(graph.nodes[i]) && !classes.recomputable[i] && named.insert(graph.nodes[i].op).second)
      statistics.ops_not_recomputable.push_back(python_name(graph.nodes[i].op));
  for (const std::vector<NodeIndex>* saved : {&partition.saved, &partition.saved_symbols})
    for (const NodeIndex node : *saved) {
      const int64_t bytes = cut_bytes(graph.nodes[node]);
      statistics.saved_bytes += bytes;
      statistics.sizes.emplace_back(bytes, graph.nodes[node].name);
    }
  std::ranges::sort(statistics.sizes);

  std::vector<char> in_backward(graph.nodes.size(), 0);
  for (const NodeIndex node : partition.backward.ops) {
    in_backward[node] = 1;
    statistics.backward += is_call(graph.nodes[node]);
  }
  std::unordered_map<std::string, size_t> position;
  for (const NodeIndex i : partition.forward.ops) {
    const JointNode& node = graph.nodes[i];
    if (!is_call(node)) continue;
    ++statistics.forward;
    if (!in_backward[i]) continue;
    ++statistics.recomputed;
    if (!is_packet(node)) continue;
    const auto [at, added] = position.emplace(node.op, statistics.recomputed_ops.size());
    if (added) statistics.recomputed_ops.emplace_back(python_name(node.op), 0);
    ++statistics.recomputed_ops[at->second].second;
  }
  std::ranges::stable_sort(statistics.recomputed_ops, std::greater(), &std::pair<std::string, int>::second);
  return statistics;
}

std::string to_text(const PartitionStatistics& statistics) {
  std::vector<std::string> sizes, counts;
  for (const auto& [bytes, name] : statistics.sizes) sizes.push_back("(" + std::to_string(bytes) + ", '" + name + "')");
  for (const auto& [op, count] : statistics.recomputed_ops)
    counts.push_back("('" + op + "', " + std::to_string(count) + ")");
  const std::string gigabytes = fixed(static_cast<double>(statistics.saved_bytes) / 1e9, 2);
  return "Ops banned from re-materialization: {" + join(statistics.ops_not_recomputable) + "}\n" +
         "Theoretical Activations Stored: " + gigabytes + " GB\n" + "Theoretical Per Activation Storage Sizes: [" +
         join(sizes) + "]\n" + "# remat/fw/bw: " + std::to_string(statistics.recomputed) + "/" +
         std::to_string(statistics.forward) + "/" + std::to_string(statistics.backward) + "\n" +
         "Count of Ops Rematerialized: [" + join(counts) + "]\n";
}

}  // namespace plumbline::partition
