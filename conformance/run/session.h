// A session: judges cases as their results arrive, prints the progress, and writes the report.
#pragma once

#include <chrono>
#include <filesystem>
#include <iosfwd>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conformance/judge/judge.h"
#include "conformance/judge/verdict/waivers.h"
#include "conformance/plan/plan.h"
#include "conformance/protocol/protocol.h"
#include "conformance/protocol/report_folder.h"
#include "conformance/report/report.h"
#include "conformance/run/folder/open_report.h"
#include "conformance/run/folder/result_seal.h"
#include "conformance/run/progress.h"
#include "conformance/run/throughput.h"

namespace plumbline::conformance {

class Session {
 public:
  /// `options` and `plan` outlive the session. `backend`: its deliveries are compared; without a name, the runtime,
  /// which delivers everything. Unsupported runs of the plan get their verdict at once, unless `report`, from
  /// open_report_folder(), has it. Throws InputError for waivers that cannot be read.
  Session(const RunOptions& options, const RunPlan& plan, std::ostream& out, BackendDescription backend = {},
          OpenReport report = {});

  /// Run `index` of the plan has begun.
  void begins(size_t index);
  /// All ranks have written the run's files: judges them.
  void done(size_t index);
  /// The recording of a model on one rank, with which its other runs are compared, is written: it must not change.
  void baseline_done(const std::string& model);
  /// A backend has ended: a run whose files have changed since it was done gets the status Error.
  void hold_to_seals();
  /// The run gets this status without being judged (JobObserver::failed()).
  void failed(size_t index, Status status, const std::string& reason);
  void measured(const ThroughputRun& run);
  /// A line that the user sees above the progress.
  void note(const std::string& line) { progress_.note(line); }
  /// An error outside of any case: the run as a whole failed.
  void broken(const std::string& reason);

  /// The backend did not start: cases without a verdict have not been run. Printed once.
  void not_started(const std::string& reason);

  bool judged(size_t index) const { return judged_.contains(index); }
  /// Of a run that is judged.
  const Verdict& verdict(size_t index) const { return verdicts_.at(index); }

  /// Work outside of the plan's runs has begun.
  void working_on(const std::string& what) { progress_.working_on(what); }

  /// Prints the matrix, the failures and the measurements, writes the report folder; returns the exit code.
  int report();

 private:
  /// From now on the run's files must not change. Our runtime's are not watched.
  void seal(size_t index);
  Verdict empty_verdict(size_t index) const;
  /// One line; empty if it has not, or if there is none.
  std::string why_baseline_changed(const std::string& model) const;
  void finish(size_t index, Verdict verdict);
  void keep(size_t index, Verdict verdict);
  void print(const RunReport& report);

  const RunOptions& options_;
  const RunPlan& plan_;
  const ReportFolder folder_;
  const ReportLock lock_;
  std::ostream& out_;
  Judge judge_;
  Waivers waivers_;
  BackendDescription backend_;
  std::vector<Verdict> verdicts_;
  std::map<size_t, ResultSeal> seals_;                ///< of the results of runs
  std::map<std::string, ResultSeal> baseline_seals_;  ///< of the recordings on one rank, by model
  std::set<size_t> judged_;
  std::set<size_t> earlier_;  ///< of these, what the interrupted run has judged
  std::vector<Throughput> throughput_;
  std::vector<std::string> broken_;
  std::string not_started_;  ///< why the backend did not start; else empty
  std::chrono::steady_clock::time_point begin_, case_begin_;
  Progress progress_;
};

}  // namespace plumbline::conformance
