// For tests and benchmarks: a joint graph with everything that a cut or a plan of it needs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/partition/cut/min_cut.h"
#include "runtime/partition/extract.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/reorder.h"

namespace plumbline::testing {

struct PreparedGraph {
  explicit PreparedGraph(partition::JointGraph made, const std::string& policy_name = "torch-2.15")
      : graph(std::move(made)),
        edges(partition::edges_of(graph)),
        policy(partition::load_policy(policy_name)),
        ops(partition::classify_ops(graph, policy)),
        classes(partition::classify_nodes(graph, edges, policy, ops, {})),
        input{graph, edges, policy, ops, classes} {}
  PreparedGraph(const PreparedGraph&) = delete;  // `input` refers to the other members

  /// Forward and backward for these saved values, as partition() divides them in our own modes.
  partition::Partition divided(const std::vector<partition::NodeIndex>& nodes) const {
    partition::Partition partition;
    partition.graph = graph;
    std::vector<partition::NodeIndex> saved, symbols;
    for (const partition::NodeIndex node : nodes)
      (graph.nodes[node].out.kind == partition::JointResult::Kind::Scalar ? symbols : saved).push_back(node);
    partition::divide(partition, edges, std::move(saved), std::move(symbols), policy);
    partition::order_calls(partition, edges, policy, partition::Reordering::KeepsEffects);
    return partition;
  }

  const partition::JointGraph graph;
  const partition::JointEdges edges;
  const partition::Policy policy;
  const partition::OpClasses ops;
  const partition::NodeClasses classes;
  const partition::CutInput input;
};

}  // namespace plumbline::testing
