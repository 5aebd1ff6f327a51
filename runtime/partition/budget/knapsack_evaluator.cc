#include "runtime/partition/budget/knapsack_evaluator.h"

#include <algorithm>
#include <deque>
#include <numeric>

#include "runtime/error.h"

namespace plumbline::partition {
namespace {

using Lists = std::vector<std::vector<int>>;

Lists users_of(int nodes, const std::vector<std::pair<int, int>>& edges) {
  Lists users(nodes);
  for (const auto& [from, to] : edges) users[from].push_back(to);
  return users;
}

/// By node: its number as a candidate, or -1.
std::vector<int> candidate_numbers(const KnapsackGraph& graph) {
  std::vector<int> number(graph.nodes, -1);
  for (size_t c = 0; c < graph.candidates.size(); ++c) number[graph.candidates[c]] = static_cast<int>(c);
  return number;
}

/// By candidate: those that are met first on the ways from it.
Lists next_candidates(const KnapsackGraph& graph) {
  const Lists users = users_of(graph.nodes, graph.edges);
  const std::vector<int> number = candidate_numbers(graph);
  std::vector<int> seen_from(graph.nodes, -1);
  Lists next(graph.candidates.size());
  std::vector<int> to_visit;
  for (size_t c = 0; c < graph.candidates.size(); ++c) {
    to_visit.assign(1, graph.candidates[c]);
    while (!to_visit.empty()) {
      const int node = to_visit.back();
      to_visit.pop_back();
      for (int user : users[node]) {
        if (seen_from[user] == static_cast<int>(c)) continue;
        seen_from[user] = static_cast<int>(c);
        if (number[user] >= 0)
          next[c].push_back(number[user]);
        else
          to_visit.push_back(user);
      }
    }
  }
  return next;
}

std::vector<int> by_position(const KnapsackGraph& graph) {
  std::vector<int> order(graph.candidates.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) { return graph.candidates[a] < graph.candidates[b]; });
  return order;
}

}  // namespace

double KnapsackGraph::memory_of_all() const { return std::accumulate(memories.begin(), memories.end(), 0.0); }
double KnapsackGraph::runtime_of_all() const { return std::accumulate(runtimes.begin(), runtimes.end(), 0.0); }

KnapsackGraph knapsack_graph(const JointGraph& graph, std::span<const NodeIndex> candidates,
                             std::vector<double> memories, std::vector<double> runtimes) {
  KnapsackGraph result{.nodes = static_cast<int>(graph.nodes.size()),
                       .edges = {},
                       .candidates = {candidates.begin(), candidates.end()},
                       .memories = std::move(memories),
                       .runtimes = std::move(runtimes)};
  const JointEdges edges = edges_of(graph);
  for (int node = 0; node < result.nodes; ++node)
    for (const NodeIndex user : edges.users(node)) result.edges.emplace_back(node, user);
  return result;
}

CandidateEdges candidate_edges(const KnapsackGraph& graph) {
  const std::vector<int> number = candidate_numbers(graph);
  CandidateEdges result;
  for (const auto& [from, to] : graph.edges)
    if (number[from] >= 0 && number[to] >= 0) result.emplace_back(number[from], number[to]);
  std::sort(result.begin(), result.end());
  return result;
}

CandidateEdges candidate_edges_in_context(const KnapsackGraph& graph) {
  const size_t candidates = graph.candidates.size();
  const size_t words = (candidates + 63) / 64;
  const Lists next = next_candidates(graph);
  const std::vector<int> order = by_position(graph);
  // By candidate, as bits: all that depend on it.
  std::vector<uint64_t> reached(candidates * words, 0), beyond(words);
  CandidateEdges result;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const int c = *it;
    std::fill(beyond.begin(), beyond.end(), 0);
    for (int n : next[c])
      for (size_t w = 0; w < words; ++w) beyond[w] |= reached[n * words + w];
    for (int n : next[c])
      if (!(beyond[n / 64] >> n % 64 & 1)) result.emplace_back(c, n);
    for (int n : next[c]) beyond[n / 64] |= uint64_t{1} << n % 64;
    std::copy(beyond.begin(), beyond.end(), reached.begin() + static_cast<std::ptrdiff_t>(c * words));
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::string BackwardMemory::describe(std::span<const std::string> names) const {
  switch (step) {
    case Step::Begin:
      return "Initial Peak/Current Memory";
    case Step::DropSaved:
      return "Dropping Node(already saved): " + names[candidate];
    case Step::Recompute:
      return "Recomputing Node: " + names[candidate];
    case Step::RecomputeFor:
      return "Recomputing Predecessor of " + names[needed_by] + ": " + names[candidate];
    case Step::Drop:
      return "Dropping Node: " + names[candidate];
  }
  return "";
}

std::vector<BackwardMemory> backward_memory(const KnapsackGraph& graph, const std::vector<char>& kept) {
  using Step = BackwardMemory::Step;
  const size_t candidates = graph.candidates.size();
  PLUMBLINE_CHECK(kept.size() == candidates, "one flag for each candidate");
  Lists inputs(candidates);
  for (const auto& [from, to] : candidate_edges_in_context(graph)) inputs[to].push_back(from);

  double memory = 0;
  for (size_t c = 0; c < candidates; ++c) memory += kept[c] ? graph.memories[c] : 0;
  std::vector<BackwardMemory> steps{{.memory = memory}};
  std::vector<char> there = kept;
  const auto take = [&](Step step, int candidate, int needed_by = -1) {
    const bool drops = step == Step::DropSaved || step == Step::Drop;
    memory += drops ? -graph.memories[candidate] : graph.memories[candidate];
    steps.push_back({.memory = memory, .step = step, .candidate = candidate, .needed_by = needed_by});
  };
  const std::vector<int> order = by_position(graph);
  std::deque<int> to_compute;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const int candidate = *it;
    if (there[candidate]) {
      take(Step::DropSaved, candidate);
      continue;
    }
    there[candidate] = 1;
    take(Step::Recompute, candidate);
    const auto want_inputs = [&](int of) {
      for (int input : inputs[of]) {
        if (there[input]) continue;
        there[input] = 1;
        to_compute.push_back(input);
      }
    };
    for (want_inputs(candidate); !to_compute.empty(); to_compute.pop_front()) {
      take(Step::RecomputeFor, to_compute.front(), candidate);
      want_inputs(to_compute.front());
    }
    take(Step::Drop, candidate);
  }
  return steps;
}

KnapsackEvaluation evaluate(const KnapsackGraph& graph, const KnapsackChoice& choice, bool with_backward) {
  const std::vector<char> kept = kept_items(choice, graph.candidates.size());
  KnapsackEvaluation result;
  for (size_t c = 0; c < kept.size(); ++c)
    (kept[c] ? result.peak_memory : result.recomputation_runtime) += kept[c] ? graph.memories[c] : graph.runtimes[c];
  if (with_backward)
    for (const BackwardMemory& step : backward_memory(graph, kept))
      result.peak_memory = std::max(result.peak_memory, step.memory);
  const double memory = graph.memory_of_all(), runtime = graph.runtime_of_all();
  result.shares = {.memory = memory == 0 ? 0 : result.peak_memory / memory,
                   .recomputation = runtime == 0 ? 0 : result.recomputation_runtime / runtime};
  return result;
}

std::vector<KnapsackEvaluation> evaluate_capacities(const KnapsackGraph& graph, const KnapsackSolve& solve,
                                                    std::span<const double> capacities) {
  std::vector<KnapsackEvaluation> results;
  for (double capacity : capacities) {
    results.push_back(evaluate(graph, solve({graph.memories, graph.runtimes, capacity})));
    results.back().capacity = capacity;
  }
  return results;
}

double knee_capacity(const KnapsackGraph& graph, const KnapsackSolve& solve, double most, double least, int count) {
  const std::vector<double> capacities = capacities_between(least, most, count);
  std::vector<KnapsackShares> shares;
  for (const KnapsackEvaluation& evaluation : evaluate_capacities(graph, solve, capacities))
    shares.push_back(evaluation.shares);
  const int knee = knee_point(shares);
  return knee < 0 ? most : capacities[knee];
}

}  // namespace plumbline::partition
