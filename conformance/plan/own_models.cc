#include "conformance/plan/own_models.h"

#include <fnmatch.h>

#include <algorithm>
#include <ranges>
#include <set>

#include "runtime/error.h"
#include "runtime/text/join.h"

namespace plumbline::conformance {
namespace {

/// Those of `names` that one of the patterns, separated by commas, matches, in their order.
std::vector<std::string> matching(const std::vector<std::string>& names, const std::string& patterns,
                                  const char* option, const std::string& backend) {
  std::set<std::string> matched;
  for (const auto& part : std::views::split(patterns, ',')) {
    const std::string pattern(part.begin(), part.end());
    bool any = false;
    for (const std::string& name : names)
      if (fnmatch(pattern.c_str(), name.c_str(), 0) == 0) matched.insert(name), any = true;
    if (!any)
      throw InputError(std::string(option) + ": '" + pattern + "' matches nothing of its own that " + backend +
                       " has; there are: " + join(names));
  }
  std::vector<std::string> kept;
  std::ranges::copy_if(names, std::back_inserter(kept),
                       [&](const std::string& name) { return matched.contains(name); });
  return kept;
}

std::vector<int> numbers_of_ranks(const Selection& selection, const std::vector<int>& can) {
  const auto allowed = [&](int ranks) { return can.empty() || std::ranges::find(can, ranks) != can.end(); };
  if (!allowed(1))
    throw InputError(
        "--backend: its file does not allow 1 rank, and models of its own are held against their run on one");
  if (selection.ranks == 1)
    throw InputError("--ranks: 1 given; a run on one rank is what models of its own are held against: 2 or more");
  std::vector<std::string> numbers;
  for (const int ranks : can) numbers.push_back(std::to_string(ranks));
  if (selection.ranks && !allowed(*selection.ranks))
    throw InputError("--ranks: " + std::to_string(*selection.ranks) + " given; the backend's file says " +
                     join(numbers));
  std::vector<int> ranks = {2, 4, 8};
  if (selection.ranks || !selection.case_glob.empty()) ranks = {selection.ranks_or_default()};
  std::erase_if(ranks, [&](int n) { return !allowed(n); });
  if (ranks.empty() && can.back() == 1)
    throw InputError("--backend: its file allows 1 rank only; there is nothing to hold against that run");
  return ranks.empty() ? std::vector{can.back()} : ranks;
}

}  // namespace

RunPlan plan_own_models(const RunOptions& options, const BackendDescription& backend) {
  const Selection& selection = options.selection;
  if (selection.profile)
    throw InputError("--profile: " + *selection.profile + " chooses cases, and " + backend.name +
                     " runs models of its own; --case chooses some of them");
  const std::vector<std::string> models =
      matching(backend.models, selection.case_glob.empty() ? "*" : selection.case_glob, "--case", backend.name);
  const std::vector<std::string> schedules =
      matching(*backend.schedules, selection.schedules.value_or("*"), "--schedule", backend.name);
  const std::vector<int> ranks = numbers_of_ranks(selection, options.backend_ranks);
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
