#include "runtime/partition/parity/partition_mode.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "runtime/error.h"
#include "runtime/partition/budget/budget.h"
#include "runtime/partition/parity/knapsack_solvers.h"
#include "runtime/text/number.h"

namespace plumbline::partition {
namespace {

using NamedMode = std::pair<PartitionMode, std::string_view>;
constexpr std::array<NamedMode, 4> kModes{
    NamedMode{PartitionMode::Default, "default"}, NamedMode{PartitionMode::MinCut, "min-cut"},
    NamedMode{PartitionMode::Aggressive, "aggressive"}, NamedMode{PartitionMode::Bytes, "bytes"}};

template <KnapsackChoice (*solve)(const KnapsackProblem&)>
std::vector<int> kept(const BudgetProblem& problem) {
  return solve(problem.knapsack).kept;
}
std::vector<int> kept_in_bytes(const BudgetProblem& problem) {
  return knapsack_in_bytes(problem.bytes, problem.knapsack.values, problem.capacity_bytes).kept;
}
/// The solvers other than "exact", which is a BudgetSolver without a function.
const std::array<BudgetSolver, 4>& solvers() {
  static const std::array<BudgetSolver, 4> all{
      BudgetSolver{"greedy", &kept<&knapsack_greedy>}, BudgetSolver{"hirschberg", &kept<&knapsack_hirschberg>},
      BudgetSolver{"knee-point", &kept<&knapsack_knee_point>}, BudgetSolver{"bytes", &kept_in_bytes}};
  return all;
}

constexpr std::string_view kBudget = "budget=";

[[noreturn]] void refuse(const std::string& text) {
  throw InputError("partition: the mode '" + text +
                   "' is none of default, min-cut, aggressive, bytes and budget=X (X from 0 to 1; budget=X:peak counts "
                   "the simulated peak and has no solver, budget=X:SOLVER solves by exact, greedy, hirschberg, "
                   "knee-point or bytes)");
}

}  // namespace

PartitionOptions parse_partition_mode(const std::string& text) {
  PartitionOptions options;
  for (const auto& [mode, name] : kModes)
    if (text == name) {
      options.mode = mode;
      return options;
    }
  if (!text.starts_with(kBudget)) refuse(text);
  options.mode = PartitionMode::Budget;
  std::string_view word = std::string_view(text).substr(kBudget.size());
  const auto budget = take_number<double>(word);
  if (!budget || !(*budget >= 0 && *budget <= 1)) refuse(text);
  options.budget = *budget;
  if (word.empty()) return options;
  if (word.front() != ':') refuse(text);
  word.remove_prefix(1);
  if (word == "peak") {
    options.measure = BudgetMeasure::Peak;
    return options;
  }
  if (word == "exact") return options;
  const auto solver = std::ranges::find(solvers(), word, &BudgetSolver::name);
  if (solver == solvers().end()) refuse(text);
  options.solver = *solver;
  return options;
}

std::string to_string(const PartitionOptions& options) {
  for (const auto& [mode, name] : kModes)
    if (options.mode == mode) return std::string(name);
  std::array<char, 32> digits;
  const auto number = std::to_chars(digits.data(), digits.data() + digits.size(), options.budget);
  std::string text = std::string(kBudget) + std::string(digits.data(), number.ptr);
  if (options.measure == BudgetMeasure::Peak) return text + ":peak";
  return options.solver.name.empty() ? text : text + ":" + options.solver.name;
}

}  // namespace plumbline::partition
