#include "conformance/plan/own_models.h"

#include <algorithm>

#include "runtime/error.h"
#include "runtime/text/join.h"
#include "runtime/text/patterns.h"

namespace plumbline::conformance {
namespace {

/// The names that the value of `option` chooses.
std::vector<std::string> chosen(const std::vector<std::string>& names, const std::string& patterns, const char* option,
                                const std::string& backend) {
  return matching(names, split_at_commas(patterns), [&](const std::string& pattern) {
    return std::string(option) + ": '" + pattern + "' matches nothing of its own that " + backend +
           " has; there are: " + join(names);
  });
}

std::vector<int> numbers_of_ranks(const Selection& selection, const BackendSpec& backend) {
  if (!backend.ranks.empty() && backend.ranks.front() != 1)
    throw InputError(
        "--backend: its file does not allow 1 rank, and models of its own are held against their run on one");
  if (std::ranges::find(selection.ranks, 1) != selection.ranks.end())
    throw InputError("--ranks: 1 given; a run on one rank is what models of its own are held against: 2 or more");
  std::vector<int> ranks = selection.ranks;
  if (ranks.empty()) ranks = selection.case_glob.empty() ? std::vector{2, 4, 8} : std::vector{kDefaultRanks};
  ranks = ranks_of_backend(std::move(ranks), selection, backend);
  if (ranks == std::vector{1})
    throw InputError("--backend: its file allows 1 rank only; there is nothing to hold against that run");
  return ranks;
}

}  // namespace

RunPlan plan_own_models(const RunOptions& options, const BackendDescription& backend) {
  const Selection& selection = options.selection;
  if (selection.profile)
    throw InputError("--profile: " + *selection.profile + " chooses cases, and " + backend.name +
                     " runs models of its own; --case chooses some of them");
  const std::vector<std::string> models =
      chosen(backend.models, selection.case_glob.empty() ? "*" : selection.case_glob, "--case", backend.name);
  const std::vector<std::string> schedules =
      chosen(*backend.schedules, selection.schedules.value_or("*"), "--schedule", backend.name);
  const std::vector<int> ranks = numbers_of_ranks(selection, options.backend);
  RunPlan plan;
  for (const int n : ranks) plan.groups.push_back({TransportKind::Own, empty_job(options, n), {}});
  for (const std::string& model : models)
    for (const std::string& schedule : schedules)
      for (RunGroup& group : plan.groups) {
        group.runs.push_back(plan.runs.size());
        plan.runs.push_back({{model, schedule, group.job.ranks, transport_name(TransportKind::Own)}});
        group.job.cases.push_back(job_case(plan.runs.back()));
      }
  return plan;
}

}  // namespace plumbline::conformance
