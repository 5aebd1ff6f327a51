// For tests and benchmarks: a joint graph with all that a cut or a plan of it asks for.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/partition/cut/min_cut.h"
#include "runtime/partition/extract.h"
#include "runtime/partition/reorder.h"

namespace plumbline::testing {

struct PreparedGraph {
  explicit PreparedGraph(JointGraph made, const std::string& policy_name = "torch-2.15")
      : graph(std::move(made)),
        edges(edges_of(graph)),
        policy(load_policy(policy_name)),
        ops(classify_ops(graph, policy)),
        classes(classify_nodes(graph, edges, policy, {})),
        input{graph, edges, policy, ops, classes} {}
  PreparedGraph(const PreparedGraph&) = delete;  // `input` refers to the rest

  /// Forward and backward for these saved values, as partition() makes them in our own modes.
  Partition divided(const std::vector<NodeIndex>& nodes) const {
    Partition partition;
    partition.graph = graph;
    std::vector<NodeIndex> saved, symbols;
    for (const NodeIndex node : nodes)
      (graph.nodes[node].out.kind == JointResult::Kind::Scalar ? symbols : saved).push_back(node);
    divide(partition, edges, std::move(saved), std::move(symbols), policy);
    order_calls(partition, edges, policy, Reordering::KeepsEffects);
    return partition;
  }

  const JointGraph graph;
  const JointEdges edges;
  const Policy policy;
  const OpClasses ops;
  const NodeClasses classes;
  const CutInput input;
};

}  // namespace plumbline::testing
