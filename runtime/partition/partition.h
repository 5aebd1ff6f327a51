// partition(): a joint graph becomes a forward graph, a backward graph, and the values saved in between.
//
// After AOTAutograd's `default_partition` and `min_cut_rematerialization_partition` (_functorch/partitioners.py), which
// the torch policies follow to the node, and two modes of our own: `Bytes` (the fewest saved bytes, proven) and a
// budget by the simulated peak.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/partition/joint/joint_graph.h"
#include "runtime/partition/policy/policy.h"

namespace plumbline::partition {

/// A graph cut out of a joint one: its inputs (which may be inner nodes there), the calls, getitems and constants that
/// it runs, in order, and what it returns.
struct Subgraph {
  std::vector<NodeIndex> inputs;
  std::vector<NodeIndex> ops;
  std::vector<NodeIndex> outputs;  ///< kNoNode for None
};

enum class PartitionMode : uint8_t { Default, MinCut, Aggressive, Bytes, Budget };
struct BudgetProblem;  // runtime/partition/budget/budget.h
/// Which candidates a budget saves, by index; none set: knapsack_dp() of knapsack.h.
struct BudgetSolver {
  std::string name = {};  ///< as a mode spells it ("budget=0.25:greedy")
  std::function<std::vector<int>(const BudgetProblem&)> solve = {};
};
/// What a budget counts.
enum class BudgetMeasure : uint8_t {
  Saved,  ///< as PyTorch: saved bytes, between those of the inputs (0) and of the minimum cut (1)
  Peak    ///< the simulated peak of forward and backward (memory.h), between the least and that of saving everything
};

struct PartitionOptions {
  PartitionMode mode = PartitionMode::MinCut;
  double budget = 1;  ///< of mode Budget, 0 to 1
  BudgetMeasure measure = BudgetMeasure::Saved;
  BudgetSolver solver = {};
  /// Indices among the primals: live as long as the module, so saving them costs nothing.
  std::vector<int> static_inputs = {};
};

/// One cut on the way, for whoever wants to know why.
struct CutRecord {
  std::vector<std::string> rules;  ///< names of the bans that were on, as in the JSON form
  std::vector<NodeIndex> dont_ban, saved, banned;
};

struct Partition {
  /// The joint graph after clean-up; all indices refer to it.
  JointGraph graph;
  /// What crosses, in the order in which the forward returns it: tensors, then symbolic scalars.
  std::vector<NodeIndex> saved, saved_symbols;
  /// forward.outputs: the module's, then saved, then saved_symbols. backward.inputs: saved_symbols, saved, tangents.
  Subgraph forward, backward;
  /// Random calls that run in both: the forward records the generator's state before each, the backward replays it.
  std::vector<NodeIndex> replayed;
  std::vector<CutRecord> cuts;
  /// The budget that the graph itself asks for (JointNode::memory_budget), where it took the place of that of the
  /// options: the mode in force is then Budget.
  std::optional<double> budget_of_graph = {};

  /// Nodes in forward.ops and backward.ops, ascending.
  std::vector<NodeIndex> recomputed() const;
};

/// Throws InputError: a budget outside 0 to 1, static_inputs out of range, no cut exists (see min_cut.h), or something
/// in the graph that cannot be partitioned, by name. A graph that is moved in is not copied.
Partition partition(JointGraph graph, const Policy& policy, const PartitionOptions& options);

/// The same for the same graph, policy and options on every rank; differs where ranks chose other saved values. Over
/// the structure and the chosen names, not over memory addresses.
uint64_t certificate(const Partition& partition);

}  // namespace plumbline::partition
