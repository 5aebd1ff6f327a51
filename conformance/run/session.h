// A session: judges cases as their results arrive, tells a person, and puts the report together.
#pragma once

#include <chrono>
#include <filesystem>
#include <iosfwd>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conformance/judge/judge.h"
#include "conformance/judge/waivers.h"
#include "conformance/plan/plan.h"
#include "conformance/protocol/protocol.h"
#include "conformance/protocol/report_folder.h"
#include "conformance/report/report.h"
#include "conformance/run/progress.h"
#include "conformance/run/throughput.h"

namespace plumbline::conformance {

class Session {
 public:
  /// `options` and `plan` outlive the session. `backend` is whose results these are: what it delivers is compared;
  /// without a name, our own runtime, which delivers everything. What the plan calls unsupported is noted at once,
  /// unless `earlier`, from open_report_folder(), has it. Throws InputError for waivers that cannot be read.
  Session(const RunOptions& options, const RunPlan& plan, std::ostream& out, BackendDescription backend = {},
          std::vector<Verdict> earlier = {});

  /// Run `index` of the plan is under way.
  void begins(size_t index);
  /// All ranks have written their files for it: judge them.
  void done(size_t index);
  /// The ranks ended, or were ended, while it ran.
  void failed(size_t index, Status status, const std::string& reason);
  void measured(const ThroughputRun& run);
  /// A line that the user sees above the progress.
  void note(const std::string& line) { progress_.note(line); }
  /// Something went wrong that belongs to no case: the run as a whole failed.
  void broken(const std::string& reason);

  /// The backend could not be talked to: cases of which nothing else is heard have not been run. Told once.
  void not_started(const std::string& reason);

  bool judged(size_t index) const { return judged_.contains(index); }
  /// Of a run that is judged.
  const Verdict& verdict(size_t index) const { return verdicts_.at(index); }

  /// Something that is no run of the plan is under way.
  void working_on(const std::string& what) { progress_.working_on(what); }

  /// Prints the matrix, the failures and the measurements, writes the report folder; returns the exit code.
  int report();

 private:
  Verdict empty_verdict(size_t index) const;
  void finish(size_t index, Verdict verdict);
  void print(const RunReport& report);

  const RunOptions& options_;
  const RunPlan& plan_;
  const ReportFolder folder_;
  std::ostream& out_;
  Judge judge_;
  Waivers waivers_;
  BackendDescription backend_;
  std::vector<Verdict> verdicts_;
  std::set<size_t> judged_;
  std::vector<Throughput> throughput_;
  std::vector<std::string> broken_;
  std::string not_started_;  ///< why, where it did not
  std::chrono::steady_clock::time_point begin_, case_begin_;
  Progress progress_;
};

}  // namespace plumbline::conformance
