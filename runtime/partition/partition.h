// partition(): splits a joint graph into a forward graph and a backward graph, and chooses the values saved between
// them.
//
// After AOTAutograd's `default_partition` and `min_cut_rematerialization_partition` (_functorch/partitioners.py), whose
// results the torch policies reproduce node for node. PyTorch lacks two modes: `Bytes` (provably the fewest saved
// bytes) and a budget on the simulated peak.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/partition/joint/joint_graph.h"
#include "runtime/partition/policy/policy.h"

namespace plumbline::partition {

/// A part of a joint graph.
struct Subgraph {
  std::vector<NodeIndex> inputs;   ///< may be inner nodes of the joint graph
  std::vector<NodeIndex> ops;      ///< calls, getitems and constants, in the order of execution
  std::vector<NodeIndex> outputs;  ///< kNoNode for None
};

enum class PartitionMode : uint8_t { Default, MinCut, Aggressive, Bytes, Budget };
struct BudgetProblem;  // runtime/partition/budget/budget.h
/// Chooses the candidates that a budget saves.
struct BudgetSolver {
  std::string name = {};  ///< the suffix of a mode, such as "greedy" in "budget=0.25:greedy"; empty for the default
  /// Returns indices into BudgetProblem::candidates, in any order. Empty: knapsack_dp() of knapsack.h.
  std::function<std::vector<int>(const BudgetProblem&)> solve = {};
};
/// The quantity that a budget limits.
enum class BudgetMeasure : uint8_t {
  Saved,  ///< as in PyTorch: saved bytes, from those of the inputs (0) to those of the minimum cut (1)
  Peak    ///< simulated peak in bytes (memory.h), from a lower bound (0) to the peak with everything saved (1)
};

struct PartitionOptions {
  PartitionMode mode = PartitionMode::MinCut;
  double budget = 1;  ///< of mode Budget: a fraction, 0 to 1
  BudgetMeasure measure = BudgetMeasure::Saved;
  BudgetSolver solver = {};  ///< of measure Saved
  /// Positions among the primals of those that live as long as the module, such as parameters: saving them is free.
  std::vector<int> static_inputs = {};
};

/// One cut on the way to the result, for diagnostics.
struct CutRecord {
  std::vector<std::string> rules;  ///< CutRules::names(); {"bytes"} or {"peak"} in those modes
  std::vector<NodeIndex> dont_ban, saved, banned;
};

struct Partition {
  /// The joint graph after clean-up; mode Default cleans up only if it makes a minimum cut. All indices refer to this
  /// graph.
  JointGraph graph;
  /// The values passed from forward to backward, in the order in which the forward returns them: tensors, then symbolic
  /// scalars.
  std::vector<NodeIndex> saved, saved_symbols;
  /// forward.inputs: primals, seeds of the forward. forward.outputs: the module's outputs, saved, saved_symbols.
  /// backward.inputs: saved_symbols, saved, tangents, seeds of the backward. backward.outputs: the gradients.
  Subgraph forward, backward;
  /// Random calls that run in both halves, ascending: the forward records the generator's state before each, and the
  /// backward restores that state.
  std::vector<NodeIndex> replayed;
  std::vector<CutRecord> cuts;  ///< in the order in which they were made; empty for a default partition
  /// The budget set in the graph itself (JointNode::memory_budget), if it replaced the options' budget. The effective
  /// mode is then Budget.
  std::optional<double> budget_of_graph = {};

  /// Returns the nodes that are in both forward.ops and backward.ops, ascending.
  std::vector<NodeIndex> recomputed() const;
};

/// Partitions `graph`, which must satisfy verify(). Throws InputError for a budget outside 0 to 1, for static_inputs
/// out of range, if no cut exists (min_cut.h), or naming a node that cannot be partitioned. A graph that is moved in is
/// copied only by a budget on the peak.
Partition partition(JointGraph graph, const Policy& policy, const PartitionOptions& options);

/// Returns a hash of the graph, the saved values and both halves. It is the same on every rank for the same graph,
/// policy and options; ranks that chose different saved values have different hashes.
uint64_t certificate(const Partition& partition);

}  // namespace plumbline::partition
