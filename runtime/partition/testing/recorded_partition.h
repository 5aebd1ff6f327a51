// PyTorch's recorded answer as a Partition: an oracle for values computed from partitions.
#pragma once

#include <numeric>
#include <unordered_map>

#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/partition.h"

namespace plumbline::partition {

/// Whether the run has nodes that the joint graph lacks, so that it is not a Partition of that graph.
inline bool adds_nodes(const JointGraphFile::Run& run) {
  return !run.forward.added.empty() || !run.backward.added.empty();
}

/// Refers to the graph in the file; a merged duplicate is replaced by the node that PyTorch kept.
inline Partition recorded_partition(const JointGraphFile& file, const JointGraphFile::Run& run) {
  Partition partition;
  partition.graph = file.graphs.at(file.variants.at(run.variant).graph);
  std::unordered_map<std::string, NodeIndex> index;
  for (size_t i = 0; i < partition.graph.nodes.size(); ++i)
    index.emplace(partition.graph.nodes[i].name, static_cast<NodeIndex>(i));
  if (run.mode != "default") {
    std::vector<NodeIndex> kept(partition.graph.nodes.size());
    std::iota(kept.begin(), kept.end(), 0);
    for (const auto& [duplicate, name] : file.variants.at(run.variant).cse_merged)
      kept[index.at(duplicate)] = index.at(name);
    const auto rename = [&](const auto& self, JointArgument& argument) -> void {
      if (argument.kind == JointArgument::Kind::Node) argument.node = kept[argument.node];
      for (JointArgument& item : argument.items) self(self, item);
    };
    for (JointNode& node : partition.graph.nodes)
      for (JointArgument& argument : node.args) rename(rename, argument);
  }
  const auto nodes = [&](const std::vector<std::string>& names) {
    std::vector<NodeIndex> all;
    for (const std::string& name : names) all.push_back(index.at(name));
    return all;
  };
  const auto part = [&](const JointGraphFile::Part& recorded) {
    Subgraph subgraph{nodes(recorded.in), nodes(recorded.ops), {}};
    for (const auto& out : recorded.out) subgraph.outputs.push_back(out ? index.at(*out) : kNoNode);
    return subgraph;
  };
  partition.saved = nodes(run.saved);
  partition.saved_symbols = nodes(run.saved_symbols);
  partition.forward = part(run.forward);
  partition.backward = part(run.backward);
  return partition;
}

}  // namespace plumbline::partition
