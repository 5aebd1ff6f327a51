#include "conformance/run/own_models.h"

#include <fnmatch.h>

#include <algorithm>
#include <ranges>
#include <set>

#include "conformance/recording/judge_recording.h"
#include "conformance/run/session.h"
#include "conformance/run/supervise.h"
#include "runtime/error.h"
#include "runtime/join.h"

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

std::vector<int> numbers_of_ranks(const RunOptions& options) {
  const std::vector<int>& can = options.backend_ranks;
  const auto allowed = [&](int ranks) { return can.empty() || std::ranges::find(can, ranks) != can.end(); };
  if (!allowed(1))
    throw InputError(
        "--backend: its file does not allow 1 rank, and models of its own are held against their run on one");
  if (options.ranks_given && options.ranks == 1)
    throw InputError("--ranks: 1 given; a run on one rank is what models of its own are held against: 2 or more");
  std::vector<std::string> numbers;
  for (const int ranks : can) numbers.push_back(std::to_string(ranks));
  if (options.ranks_given && !allowed(options.ranks))
    throw InputError("--ranks: " + std::to_string(options.ranks) + " given; the backend's file says " + join(numbers));
  std::vector<int> ranks = {2, 4, 8};
  if (options.ranks_given || !options.case_glob.empty()) ranks = {options.ranks};
  std::erase_if(ranks, [&](int n) { return !allowed(n); });
  if (ranks.empty() && can.back() == 1)
    throw InputError("--backend: its file allows 1 rank only; there is nothing to hold against that run");
  return ranks.empty() ? std::vector{can.back()} : ranks;
}

}  // namespace

RunPlan plan_own_models(const RunOptions& options, const BackendDescription& backend) {
  if (options.profile_given)
    throw InputError("--profile: " + options.profile + " chooses cases, and " + backend.name +
                     " runs models of its own; --case chooses some of them");
  const std::vector<std::string> models =
      matching(backend.models, options.case_glob.empty() ? "*" : options.case_glob, "--case", backend.name);
  const std::vector<std::string> schedules =
      matching(*backend.schedules, options.schedules, "--schedule", backend.name);
  const std::vector<int> ranks = numbers_of_ranks(options);
  RunPlan plan;
  for (const int n : ranks) plan.groups.push_back({TransportKind::Own, empty_job(options, n), {}});
  for (const std::string& model : models)
    for (const std::string& schedule : schedules)
      for (RunGroup& group : plan.groups) {
        group.runs.push_back(plan.runs.size());
        group.job.cases.push_back({model, schedule});
        plan.runs.push_back({group.job.cases.back(), group.job.ranks, TransportKind::Own, {}});
      }
  return plan;
}

std::filesystem::path one_rank_recording(const std::filesystem::path& report, const std::string& model) {
  return recording_of(report, {model, kOneRank}, 1);
}

std::filesystem::path recording_of(const std::filesystem::path& report, const JobCase& item, int ranks) {
  return recording_folder(report / results_folder(ranks, TransportKind::Own), item);
}

/// Hears of the runs on one rank. Models of which nothing is heard have not been run.
class OneRankRuns::Observer : public JobObserver {
 public:
  Observer(OneRankRuns& runs, const Job& job, const RunOptions& options, Session& session)
      : runs_(runs), job_(job), options_(options), session_(session) {}
  void begins(size_t index) override { session_.working_on(job_.cases[index].id + " on one rank"); }
  void done(size_t index) override {
    const std::string& model = job_.cases[index].id;
    const auto wrong = why_no_baseline(one_rank_recording(options_.report, model));
    runs_.outcomes_[model] = wrong ? Outcome(Status::Error, "on one rank: " + *wrong) : Outcome(Status::Pass, "");
  }
  void failed(size_t index, Status status, const std::string& reason) override {
    runs_.outcomes_[job_.cases[index].id] = {status, "on one rank: " + reason};
  }
  void measured(size_t, size_t) override {}
  void broken(const std::string& reason) override { session_.broken(reason); }
  void not_started(const std::string& reason) override { session_.not_started(reason); }

 private:
  OneRankRuns& runs_;
  const Job& job_;
  const RunOptions& options_;
  Session& session_;
};

OneRankRuns::OneRankRuns(const RunPlan& plan, const RunOptions& options, const Launcher& launcher, Session& session) {
  std::set<std::string> wanted, used;
  for (size_t i = 0; i < plan.runs.size(); ++i) {
    const std::string& model = plan.runs[i].item.id;
    if (!session.judged(i))
      wanted.insert(model);
    else if (session.verdict(i).tensors > 0)
      used.insert(model);
  }
  Job job = empty_job(options, 1);
  for (const std::string& model : wanted) {
    if (used.contains(model)) {
      outcomes_[model] = {Status::Pass, ""};
      continue;
    }
    job.cases.push_back({model, kOneRank});
    std::filesystem::remove_all(one_rank_recording(options.report, model));
  }
  if (job.cases.empty()) return;
  Observer observer(*this, job, options, session);
  supervise(launcher, job, session.results(1, TransportKind::Own), observer, Delivery::Recording);
}

OneRankRuns::Outcome OneRankRuns::of(const std::string& model) const {
  const auto found = outcomes_.find(model);
  return found == outcomes_.end() ? Outcome(Status::NotRun, "") : found->second;
}

}  // namespace plumbline::conformance
