#include "runtime/partition/budget/knapsack.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/error.h"
#include "runtime/partition/budget/knapsack_table.h"

namespace plumbline::partition {
std::vector<KnapsackChoice> knapsack_dp(const KnapsackProblem& problem, std::span<const double> capacities) {
  check(problem);
  const std::vector<int64_t> weights = ticks(problem.weights);
  int64_t most = 0;
  for (double capacity : capacities) {
    check_capacity(capacity);
    most = std::max(most, ticks(capacity));
  }
  const KnapsackTable<float> table(weights, problem.values, most);
  std::vector<KnapsackChoice> choices;
  for (double capacity : capacities) choices.push_back(table.choose(ticks(capacity)));
  return choices;
}

KnapsackChoice knapsack_dp(const KnapsackProblem& problem) {
  return std::move(knapsack_dp(problem, std::span(&problem.capacity, 1)).front());
}

KnapsackChoice knapsack_greedy(const KnapsackProblem& problem) {
  check(problem);
  KnapsackChoice choice;
  double taken = 0;
  for (int i : by_value_for_weight(problem.weights, problem.values)) {
    if (taken + problem.weights[i] > problem.capacity) continue;
    taken += problem.weights[i];
    choice.value += problem.values[i];
    choice.kept.push_back(i);
  }
  std::sort(choice.kept.begin(), choice.kept.end());
  return choice;
}

std::vector<char> kept_items(const KnapsackChoice& choice, size_t size) {
  std::vector<char> kept(size, 0);
  for (int item : choice.kept) {
    if (item < 0 || item >= static_cast<int>(size))
      throw InputError("knapsack: item " + std::to_string(item) + " is out of range: the number of items is " +
                       std::to_string(size));
    if (kept[item]) throw InputError("knapsack: item " + std::to_string(item) + " is kept twice");
    kept[item] = 1;
  }
  return kept;
}

}  // namespace plumbline::partition
