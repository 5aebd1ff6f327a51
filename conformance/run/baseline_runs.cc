#include "conformance/run/baseline_runs.h"

#include <set>

#include "conformance/protocol/report_folder.h"
#include "conformance/recording/judge_recording.h"
#include "conformance/run/supervise.h"

namespace plumbline::conformance {

/// Receives the outcomes of the runs on one rank. Models without an outcome have not been run.
class BaselineRuns::Observer : public JobObserver {
 public:
  Observer(BaselineRuns& runs, const Job& job, const RunOptions& options, Session& session)
      : runs_(runs), job_(job), options_(options), session_(session) {}
  void begins(size_t index) override { session_.working_on(job_.cases[index].id + " on one rank"); }
  void done(size_t index) override {
    const std::string& model = job_.cases[index].id;
    session_.baseline_done(model);
    const auto wrong = why_no_baseline(ReportFolder(options_.report).baseline_recording(model));
    runs_.outcomes_[model] = wrong ? Outcome(Status::Error, "on one rank: " + *wrong) : Outcome(Status::Pass, "");
  }
  void failed(size_t index, Status status, const std::string& reason) override {
    runs_.outcomes_[job_.cases[index].id] = {status, "on one rank: " + reason};
  }
  void broken(const std::string& reason) override { session_.broken(reason); }
  void not_started(const std::string& reason) override { session_.not_started(reason); }

 private:
  BaselineRuns& runs_;
  const Job& job_;
  const RunOptions& options_;
  Session& session_;
};

BaselineRuns::BaselineRuns(const RunPlan& plan, const RunOptions& options, const Backend& backend, Session& session) {
  std::set<std::string> wanted, used;
  for (size_t i = 0; i < plan.runs.size(); ++i) {
    const std::string& model = plan.runs[i].id.case_id;
    if (!session.judged(i))
      wanted.insert(model);
    else if (session.verdict(i).finding.tensors > 0)
      used.insert(model);
  }
  for (const std::string& model : used) session.baseline_done(model);
  const ReportFolder folder(options.report);
  Job job = empty_job(options, 1);
  for (const std::string& model : wanted) {
    if (used.contains(model)) {
      outcomes_[model] = {Status::Pass, ""};
      continue;
    }
    job.cases.push_back({model, kOneRank});
  }
  if (job.cases.empty()) return;
  Observer observer(*this, job, options, session);
  supervise(backend, job, folder.job_output(1, TransportKind::Own), observer, Delivery::Recording);
}

BaselineRuns::Outcome BaselineRuns::of(const std::string& model) const {
  const auto found = outcomes_.find(model);
  return found == outcomes_.end() ? Outcome(Status::NotRun, "") : found->second;
}

}  // namespace plumbline::conformance
