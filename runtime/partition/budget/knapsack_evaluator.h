// What a knapsack's choice means for memory and time: a model of the backward that sees the candidates only, and how
// the two are traded over many capacities. After `GraphInfoProvider` and `KnapsackEvaluator` of functorch's activation
// checkpointing.
//
// It is the model by which PyTorch's knee point is chosen and its solvers are compared, not a prediction: memory.h runs
// the whole partition in thought.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/partition/budget/knapsack.h"
#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// A graph and the nodes that a knapsack chooses among. Candidates are numbered by their position in `candidates`;
/// memories and runtimes are in any unit.
struct KnapsackGraph {
  int nodes = 0;                           ///< in topological order
  std::vector<std::pair<int, int>> edges;  ///< who is read by whom
  std::vector<int> candidates;             ///< ascending or not
  std::vector<double> memories, runtimes;  ///< by candidate

  double memory_of_all() const;   ///< PyTorch's `non_ac_peak_memory`: nothing is computed again
  double runtime_of_all() const;  ///< its `theoretical_max_runtime`: everything is
};

/// The outputs of the graph have no node.
KnapsackGraph knapsack_graph(const JointGraph& graph, std::span<const NodeIndex> candidates,
                             std::vector<double> memories, std::vector<double> runtimes);

using CandidateEdges = std::vector<std::pair<int, int>>;  ///< between candidates, by their numbers; ascending

/// Candidates that read candidates themselves.
CandidateEdges candidate_edges(const KnapsackGraph& graph);
/// Candidates that depend on candidates through any nodes, without those pairs that follow from others.
CandidateEdges candidate_edges_in_context(const KnapsackGraph& graph);

/// One step of the backward.
struct BackwardMemory {
  enum class Step : uint8_t { Begin, DropSaved, Recompute, RecomputeFor, Drop };
  double memory = 0;  ///< held after it
  Step step = Step::Begin;
  int candidate = -1;
  int needed_by = -1;  ///< of RecomputeFor

  /// In PyTorch's words: "Recomputing Predecessor of NEEDED_BY: CANDIDATE". `names` by candidate.
  std::string describe(std::span<const std::string> names) const;
};

/// The backward passes the candidates from the last to the first. One that is there is dropped; of others, everything
/// that they depend on, up to what is saved, is computed again first and then kept until the backward gets there.
/// `kept` by candidate. (PyTorch adds a saved candidate once more where one that is computed again reads it directly.)
std::vector<BackwardMemory> backward_memory(const KnapsackGraph& graph, const std::vector<char>& kept);

struct KnapsackEvaluation {
  double capacity = 0;  ///< for which it was chosen, where it was
  double peak_memory = 0, recomputation_runtime = 0;
  KnapsackShares shares;  ///< the two, of those of all candidates
};

/// `with_backward`: the peak of backward_memory(), else the memory of what is kept.
/// Throws InputError for a choice of items that do not exist or stand twice.
KnapsackEvaluation evaluate(const KnapsackGraph& graph, const KnapsackChoice& choice, bool with_backward = false);

/// What `solve` chooses for each capacity.
std::vector<KnapsackEvaluation> evaluate_capacities(const KnapsackGraph& graph, const KnapsackSolve& solve,
                                                    std::span<const double> capacities);

/// The capacity, of `count` between `least` and `most`, whose choice is the knee_point(); `most` where there is none.
double knee_capacity(const KnapsackGraph& graph, const KnapsackSolve& solve, double most = 0.1, double least = 0.001,
                     int count = 100);

}  // namespace plumbline::partition
