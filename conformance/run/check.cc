#include "conformance/run/check.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "conformance/corpus/corpus.h"
#include "conformance/plan/plan.h"
#include "conformance/report/context.h"
#include "conformance/report/read_json.h"
#include "conformance/run/left_by_run.h"
#include "conformance/run/run_record.h"
#include "runtime/error.h"
#include "runtime/one_line.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;

bool chosen(const std::string& glob, const std::string& id) {
  return glob.empty() || fnmatch(glob.c_str(), id.c_str(), 0) == 0;
}

/// What the run said itself. report.json is its last word; results.jsonl is what an interrupted one leaves.
std::vector<CaseVerdict> recorded_verdicts(const fs::path& folder) {
  std::vector<CaseVerdict> lines;
  if (fs::exists(folder / "results.jsonl")) lines = read_jsonl(folder / "results.jsonl");
  return fs::exists(folder / "report.json") ? read_report_json(folder / "report.json").verdicts : lines;
}

TransportKind transport_of(const CheckOptions& options, const RecordedRun& run) {
  for (const TransportKind kind : {TransportKind::Threads, TransportKind::Mpi, TransportKind::Own})
    if (transport_name(kind) == run.transport) return kind;
  throw InputError((options.folder / "run.json").string() + ": transport '" + one_line(run.transport) + "' of " +
                   one_line(name_of(run)) + ": expected threads, mpi or own");
}

/// As the comparison had it, before waivers.
Status judged_status(Status status) {
  if (status == Status::XPass) return Status::Pass;
  return status == Status::XFail ? Status::Fail : status;
}

/// Whether the run ended without results, so that there is nothing to judge.
bool left_nothing(const CaseVerdict& verdict) {
  switch (verdict.status) {
    case Status::Unsupported:
    case Status::Skipped:
    case Status::Error:
    case Status::Timeout:
    case Status::NotRun:
      return true;
    case Status::XFail:
      return !verdict.first && verdict.tensors == 0;
    default:
      return false;
  }
}

bool agree(const CaseVerdict& recorded, const CaseVerdict& judged) {
  if (judged_status(recorded.status) != judged_status(judged.status)) return false;
  if (recorded.first.has_value() != judged.first.has_value() || recorded.differing != judged.differing) return false;
  return recorded.tensors == judged.tensors &&
         (!recorded.first || sentence(*recorded.first) == sentence(*judged.first));
}

class Checker {
 public:
  explicit Checker(const CheckOptions& options)
      : options_(options),
        record_(read_run_record(options.folder / "run.json")),
        recorded_(recorded_verdicts(options.folder)),
        backend_(record_.describe.empty()
                     ? BackendDescription()
                     : parse_description(record_.describe, (options.folder / "run.json").string() + ": describe")),
        judge_(record_.seed) {}

  CheckResult run() {
    if (own_models() && !options_.profile.empty())
      throw InputError("--profile: " + options_.profile + " has cases, and " + record_.backend +
                       " ran models of its own");
    for (const RecordedRun& run : record_.runs) {
      if (!own_models()) require_case(run);
      const FinishedRun finished = {options_.folder,
                                    record_.microbatches,
                                    {run.case_id, run.schedule, run.csv},
                                    run.ranks,
                                    transport_of(options_, run)};
      const LeftByRun left = left_by(finished, backend_);
      if (run.unsupported.empty()) expected_files_.insert(left.files.begin(), left.files.end());
      expected_files_.insert(left.baseline.begin(), left.baseline.end());
      if (chosen(options_.case_glob, run.case_id)) check(run, finished, left);
    }
    if (result_.verdicts.empty())
      throw InputError("--case: no run in '" + options_.folder.string() + "' is of a case that matches '" +
                       options_.case_glob + "'");
    strangers();
    if (options_.case_glob.empty()) look_for_extra_files();
    if (!options_.profile.empty()) hold_against_profile();
    for (const auto& [name, value] : run_context("", {}))
      for (const auto& [was_name, was] : record_.options)
        if (name == was_name && name == "libtorch" && was != value)
          result_.notes.push_back("the run had LibTorch " + was + ", this is " + value +
                                  ": same-order results may differ in their last bits");
    return std::move(result_);
  }

 private:
  bool own_models() const { return backend_.level == CaseLevel::Own; }

  void check(const RecordedRun& run, const FinishedRun& finished, const LeftByRun& left) {
    const auto said = std::find_if(recorded_.begin(), recorded_.end(),
                                   [&](const CaseVerdict& verdict) { return is_of(verdict, run); });
    const bool is_recorded = said != recorded_.end();
    const bool any_file =
        std::any_of(left.files.begin(), left.files.end(), [](const fs::path& file) { return fs::exists(file); });
    CaseVerdict verdict;
    if (is_recorded && left_nothing(*said)) {
      verdict = *said;
    } else if (!run.unsupported.empty()) {
      verdict.status = Status::Unsupported;
      verdict.reason = run.unsupported;
    } else if (!is_recorded && !any_file) {
      verdict.status = Status::NotRun;
      verdict.reason = "the run ended before it";
    } else {
      verdict = judge_left(finished, backend_, judge_);
      hold_against_the_said(verdict, is_recorded ? &*said : nullptr, left.folder);
    }
    describe(verdict, run, is_recorded ? &*said : nullptr);
    result_.verdicts.push_back(std::move(verdict));
  }

  /// Notes as a problem where files cannot be judged, or say something else than the run did.
  void hold_against_the_said(CaseVerdict& verdict, const CaseVerdict* said, const fs::path& folder) {
    if (verdict.status == Status::Error) {
      result_.problems.push_back(verdict.reason);
    } else if (said != nullptr && !agree(*said, verdict)) {
      result_.problems.push_back(one_line(folder.string() + ": the run recorded \"" + sentence(*said) +
                                          "\", its files say \"" + sentence(verdict) + "\""));
    } else if (said != nullptr) {
      verdict.status = said->status;  // as waived
      verdict.waiver = said->waiver;
    }
  }

  void require_case(const RecordedRun& run) const {
    try {
      find_case(run.case_id);
    } catch (const InputError& error) {
      throw InputError(one_line((options_.folder / "run.json").string() + ": " + error.what()));
    }
  }

  void describe(CaseVerdict& verdict, const RecordedRun& run, const CaseVerdict* said) const {
    verdict.case_id = run.case_id;
    verdict.schedule = run.schedule;
    if (!own_models()) {
      const reference::Case& c = find_case(run.case_id);
      verdict.title = c.title;
      verdict.dtype = dtype_text(c.dtype);
    }
    verdict.backend = record_.backend;
    verdict.ranks = run.ranks;
    verdict.transport = run.transport;
    if (said == nullptr) return;
    verdict.device = said->device;
    verdict.seconds = said->seconds;
    verdict.repro = said->repro;
  }

  /// Verdicts on what was never planned.
  void strangers() {
    for (const CaseVerdict& verdict : recorded_)
      if (std::none_of(record_.runs.begin(), record_.runs.end(),
                       [&](const RecordedRun& run) { return is_of(verdict, run); }))
        result_.problems.push_back((options_.folder / "results.jsonl").string() + ": a verdict on " +
                                   one_line(verdict.case_id + " x " + verdict.schedule) +
                                   ", which is not among the runs of run.json");
  }

  void look_for_extra_files() {
    const fs::path results = options_.folder / "results";
    if (!fs::exists(results)) return;
    for (const auto& entry : fs::recursive_directory_iterator(results))
      if (entry.is_regular_file() && entry.path().extension() == ".safetensors" &&
          entry.path().filename().string().starts_with("rank") && !expected_files_.contains(entry.path()))
        result_.problems.push_back(one_line(entry.path().string()) + ": no run of run.json leaves such a file");
  }

  void hold_against_profile() {
    RunOptions options;
    options.profile = options_.profile;
    options.profile_given = true;
    options.seed = record_.seed;
    options.microbatches = record_.microbatches;
    options.throughput = false;
    const RunPlan plan = make_plan(options);
    std::set<std::string> there, wanted;
    for (const RecordedRun& run : record_.runs) there.insert(name_of(run));
    for (const PlannedRun& run : plan.runs) {
      if (!chosen(options_.case_glob, run.item.id)) continue;
      const std::string name =
          name_of({run.item.id, run.item.schedule, {}, run.ranks, transport_name(run.transport), {}});
      wanted.insert(name);
      if (!there.contains(name)) result_.missing.push_back(name);
    }
    for (const RecordedRun& run : record_.runs)
      result_.beyond_profile += chosen(options_.case_glob, run.case_id) && !wanted.contains(name_of(run)) ? 1 : 0;
  }

  const CheckOptions& options_;
  RunRecord record_;
  std::vector<CaseVerdict> recorded_;
  BackendDescription backend_;
  Judge judge_;
  std::set<fs::path> expected_files_;
  CheckResult result_;
};

}  // namespace

CheckResult check_folder(const CheckOptions& options) {
  std::error_code error;
  if (!fs::is_directory(options.folder, error)) throw InputError("no folder '" + options.folder.string() + "'");
  return Checker(options).run();
}

int exit_code(const CheckResult& result) {
  if (!result.problems.empty()) return 2;
  RunReport report;
  report.verdicts = result.verdicts;
  const int code = exit_code(report);
  return result.missing.empty() || code == 1 ? code : 1;
}

}  // namespace plumbline::conformance
