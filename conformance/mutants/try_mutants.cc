#include "conformance/mutants/try_mutants.h"

#include <algorithm>
#include <set>

#include "runtime/error.h"
#include "runtime/text/join.h"
#include "runtime/text/near_names.h"
#include "runtime/text/patterns.h"

namespace plumbline::conformance {
namespace {

/// The order in which a mutant is tried on the runs: the first of every case, the second of every case, ...
std::vector<size_t> in_rounds(const std::vector<RunId>& runs) {
  std::map<std::string, int> seen;
  std::vector<std::pair<int, size_t>> rounds;
  for (size_t i = 0; i < runs.size(); ++i) rounds.emplace_back(seen[runs[i].case_id]++, i);
  std::sort(rounds.begin(), rounds.end());
  std::vector<size_t> order;
  for (const auto& [round, i] : rounds) order.push_back(i);
  return order;
}

class Trial {
 public:
  Trial(const std::vector<RunId>& runs, FaultRunner& runner, const TryOptions& options)
      : runner_(runner), options_(options), order_(in_rounds(runs)) {
    matrix_.runs = runs;
  }

  void add(const Mutant& mutant) {
    MatrixRow row{mutant.name, mutant.what, std::vector<Kill>(matrix_.runs.size(), Kill::Untested), {}};
    std::set<std::string> killers;
    for (const bool same_case_too : {false, true})
      for (const size_t i : order_) {
        if (options_.enough > 0 && row.kills() >= options_.enough) break;
        if (row.cells[i] != Kill::Untested) continue;
        if (!same_case_too && options_.enough > 0 && killers.contains(matrix_.runs[i].case_id)) continue;
        if (!passes(i)) continue;
        const auto [kill, reason] = runner_.kill(matrix_.runs[i], mutant);
        row.cells[i] = kill;
        if (!is_kill(kill)) continue;
        row.reasons[i] = reason;
        killers.insert(matrix_.runs[i].case_id);
      }
    if (options_.say)
      options_.say(mutant.name + ": " + std::to_string(row.kills()) + " of " +
                   std::to_string(
                       std::count_if(row.cells.begin(), row.cells.end(), [](Kill k) { return k >= Kill::Survived; })) +
                   " runs in which it happened killed it");
    matrix_.rows.push_back(std::move(row));
  }

  KillMatrix take() { return std::move(matrix_); }

 private:
  bool passes(size_t i) {
    const FaultOutcome& outcome = runner_.untouched(matrix_.runs[i]);
    if (outcome.status == Status::Pass) return true;
    if (matrix_.broken.emplace(i, outcome.reason).second && options_.say)
      options_.say("BROKEN without a fault: " + to_string(matrix_.runs[i]) + ": " + outcome.reason);
    return false;
  }

  FaultRunner& runner_;
  const TryOptions& options_;
  std::vector<size_t> order_;
  KillMatrix matrix_;
};

}  // namespace

std::vector<const Mutant*> select_mutants(const std::string& patterns) {
  std::vector<std::string> names;
  for (const Mutant& mutant : mutants()) names.push_back(mutant.name);
  std::vector<const Mutant*> selected;
  for (const std::string& name : matching(names, split_at_commas(patterns), [&](const std::string& pattern) {
         return "--mutant: no mutant matches '" + pattern + "'; nearest: " + join(near_names(names, pattern));
       }))
    selected.push_back(&find_mutant(name));
  return selected;
}

std::vector<std::string> recorded_problems(const Killers& killers, FaultRunner& runner, int each) {
  std::vector<std::string> problems;
  for (const auto& [name, runs] : killers)
    if (std::none_of(mutants().begin(), mutants().end(), [&](const Mutant& mutant) { return mutant.name == name; }))
      problems.push_back(name + ": there is no such mutant");
  size_t first = 1;
  for (const Mutant& mutant : mutants()) {
    first = 1 - first;
    const auto found = killers.find(mutant.name);
    if (found == killers.end() || found->second.size() != 2 || found->second[0].run == found->second[1].run) {
      problems.push_back(mutant.name + ": it does not have two recorded killers");
      continue;
    }
    for (int i = 0; i < each; ++i) {
      const Killer& killer = found->second[(first + static_cast<size_t>(i)) % 2];
      const FaultOutcome& untouched = runner.untouched(killer.run);
      if (untouched.status != Status::Pass) {
        problems.push_back(to_string(killer.run) + ": it does not pass without a fault: " + untouched.reason);
        continue;
      }
      const auto [kill, reason] = runner.kill(killer.run, mutant);
      if (kill != killer.by)
        problems.push_back(mutant.name + " in " + to_string(killer.run) + ": " + std::string(kill_name(kill)) +
                           ", but " + std::string(kill_name(killer.by)) + " is recorded" +
                           (reason.empty() ? "" : ": " + reason));
    }
  }
  return problems;
}

KillMatrix try_mutants(const std::vector<RunId>& runs, const std::vector<const Mutant*>& mutants, FaultRunner& runner,
                       const TryOptions& options) {
  Trial trial(runs, runner, options);
  for (const Mutant* mutant : mutants) trial.add(*mutant);
  return trial.take();
}

}  // namespace plumbline::conformance
