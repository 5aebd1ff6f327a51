// partition(): splits a joint graph into a forward graph and a backward graph, and chooses the values saved between
// them.
//
// After AOTAutograd's `default_partition` and `min_cut_rematerialization_partition` (_functorch/partitioners.py), whose
// results the torch policies reproduce node for node. Two modes are our own: `Bytes` (the fewest saved bytes, provably)
// and a budget on the simulated peak.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/partition/joint/joint_graph.h"
#include "runtime/partition/policy/policy.h"

namespace plumbline::partition {

/// A part of a joint graph: its inputs (which may be inner nodes of the joint graph), the calls, getitems and constants
/// that it runs, in order, and its outputs.
struct Subgraph {
  std::vector<NodeIndex> inputs;
  std::vector<NodeIndex> ops;
  std::vector<NodeIndex> outputs;  ///< kNoNode for None
};

enum class PartitionMode : uint8_t { Default, MinCut, Aggressive, Bytes, Budget };
struct BudgetProblem;  // runtime/partition/budget/budget.h
/// Chooses which candidates a budget saves, by index. Where `solve` is empty: knapsack_dp() of knapsack.h.
struct BudgetSolver {
  std::string name = {};  ///< as in the name of a mode ("budget=0.25:greedy")
  std::function<std::vector<int>(const BudgetProblem&)> solve = {};
};
/// What a budget counts.
enum class BudgetMeasure : uint8_t {
  Saved,  ///< as in PyTorch: saved bytes, from those of the inputs (0) to those of the minimum cut (1)
  Peak    ///< simulated peak of forward and backward (memory.h), from the least possible to that of saving everything
};

struct PartitionOptions {
  PartitionMode mode = PartitionMode::MinCut;
  double budget = 1;  ///< for mode Budget, 0 to 1
  BudgetMeasure measure = BudgetMeasure::Saved;
  BudgetSolver solver = {};
  /// Indices among the primals of those that live as long as the module: saving them costs nothing.
  std::vector<int> static_inputs = {};
};

/// One cut that was made on the way, for diagnostics.
struct CutRecord {
  std::vector<std::string> rules;  ///< names of the active bans, as in the JSON form
  std::vector<NodeIndex> dont_ban, saved, banned;
};

struct Partition {
  /// The joint graph after clean-up; all indices refer to it.
  JointGraph graph;
  /// The values passed from forward to backward, in the order in which the forward returns them: tensors, then symbolic
  /// scalars.
  std::vector<NodeIndex> saved, saved_symbols;
  /// forward.outputs: those of the module, saved, saved_symbols. backward.inputs: saved_symbols, saved, tangents.
  Subgraph forward, backward;
  /// Random calls that run in both halves: the forward records the generator's state before each, the backward replays
  /// it.
  std::vector<NodeIndex> replayed;
  std::vector<CutRecord> cuts;
  /// The budget set in the graph itself (JointNode::memory_budget), if it replaced the options' budget. The effective
  /// mode is then Budget.
  std::optional<double> budget_of_graph = {};

  /// Nodes that are in both forward.ops and backward.ops, ascending.
  std::vector<NodeIndex> recomputed() const;
};

/// Throws InputError for a budget outside 0 to 1, for static_inputs out of range, where no cut exists (see min_cut.h),
/// or naming a node that cannot be partitioned. A graph that is moved in is not copied.
Partition partition(JointGraph graph, const Policy& policy, const PartitionOptions& options);

/// Equal on every rank for the same graph, policy and options; differs if ranks chose different saved values. Hashes
/// the structure and the chosen names, not memory addresses.
uint64_t certificate(const Partition& partition);

}  // namespace plumbline::partition
