#include "conformance/cli/partition/partition_table.h"

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/partition/joint/result_text.h"
#include "runtime/text/join.h"

namespace plumbline::cli {
namespace {

using Row = std::array<std::string, 5>;

/// Rows with aligned columns, two spaces apart. The first two columns are numbers and right-aligned.
std::string aligned(const std::vector<Row>& rows) {
  std::array<size_t, 5> widths = {};
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string gap(widths[i] - row[i].size(), ' ');
      line += (i == 0 ? "" : "  ") + (i < 2 ? gap + row[i] : row[i] + gap);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

/// The storage that a saved value adds to inputs, constants and earlier values: its bytes, or the owner of a shared
/// storage.
class NewStorage {
 public:
  explicit NewStorage(const partition::JointGraph& graph)
      : graph_(graph), owner_(graph.storage_bytes.size(), partition::kNoNode) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const partition::JointNode& node = graph.nodes[i];
      const bool held_anyway =
          (node.is_input() && node.kind != partition::JointKind::Tangent) || node.kind == partition::JointKind::GetAttr;
      if (!held_anyway || node.out.kind != partition::JointResult::Kind::Tensor || node.out.storage < 0) continue;
      partition::NodeIndex& owner = owner_[node.out.storage];
      if (owner == partition::kNoNode) owner = static_cast<partition::NodeIndex>(i);
    }
  }

  std::string of(partition::NodeIndex node) {
    const partition::JointNode& saved = graph_.nodes[node];
    if (saved.out.kind != partition::JointResult::Kind::Tensor) return "-";
    if (saved.out.storage < 0) return std::to_string(saved.out.bytes);
    partition::NodeIndex& owner = owner_[saved.out.storage];
    if (owner == node) return saved.is_input() ? "an input" : "a constant";
    if (owner != partition::kNoNode) return "of " + graph_.nodes[owner].name;
    owner = node;
    return std::to_string(graph_.storage_bytes[saved.out.storage]);
  }

 private:
  const partition::JointGraph& graph_;
  std::vector<partition::NodeIndex> owner_;  ///< by storage
};

std::string origin(const partition::JointNode& node) {
  if (node.kind == partition::JointKind::Primal) return node.attribute;
  if (node.kind == partition::JointKind::Call) return node.op;
  return node.kind == partition::JointKind::GetItem ? "one of several results" : "";
}

std::string recomputed_text(const partition::Partition& partition) {
  constexpr size_t most = 12;
  const std::vector<partition::NodeIndex> nodes = partition.recomputed();
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(most, nodes.size()); ++i) names.push_back(partition.graph.nodes[nodes[i]].name);
  if (nodes.size() > most) names.push_back("...");
  return std::to_string(nodes.size()) + (names.empty() ? "" : ": " + join(names));
}

}  // namespace

std::string partition_table(const partition::Partition& partition, const partition::MemoryProfile& memory) {
  const partition::JointGraph& graph = partition.graph;
  std::vector<Row> rows = {{"bytes", "new storage", "saved", "value", "from"}};
  NewStorage storage(graph);
  for (const std::vector<partition::NodeIndex>* saved : {&partition.saved, &partition.saved_symbols})
    for (const partition::NodeIndex i : *saved) {
      const partition::JointNode& node = graph.nodes[i];
      const bool tensor = node.out.kind == partition::JointResult::Kind::Tensor;
      rows.push_back({tensor ? std::to_string(node.out.bytes) : "-", storage.of(i), node.name,
                      partition::result_text(node.out), origin(node)});
    }
  const size_t count = partition.saved.size() + partition.saved_symbols.size();
  std::string text = aligned(rows);
  text += "\nsaved       " + std::to_string(count) + " values, " + std::to_string(memory.saved_nodes) +
          " bytes as PyTorch counts (each tensor in full)\n";
  text += "            " + std::to_string(memory.saved_storage) + " bytes of new storage (each once, inputs free)\n";
  text += "forward     " + std::to_string(partition.forward.ops.size()) + " nodes\n";
  text += "backward    " + std::to_string(partition.backward.ops.size()) + " nodes\n";
  text += "recomputed  " + recomputed_text(partition) + "\n";
  if (!partition.replayed.empty())
    text +=
        "replayed    " + std::to_string(partition.replayed.size()) + " random calls, with the states of the forward\n";
  text += "memory      " + std::to_string(memory.peak) + " bytes at the simulated peak";
  if (memory.peak_at < memory.bytes.size()) {
    const bool backward = memory.peak_at >= memory.backward_begin;
    const partition::Subgraph& part = backward ? partition.backward : partition.forward;
    const size_t at = memory.peak_at - (backward ? memory.backward_begin : 0);
    if (at < part.ops.size())
      text += ", in the " + std::string(backward ? "backward" : "forward") + " at " + graph.nodes[part.ops[at]].name;
  }
  return text + "; " + std::to_string(memory.between) + " between forward and backward\n";
}

}  // namespace plumbline::cli
