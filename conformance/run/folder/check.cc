#include "conformance/run/folder/check.h"

#include <algorithm>
#include <map>
#include <set>

#include "conformance/backend/built_models.h"
#include "conformance/corpus/corpus.h"
#include "conformance/plan/plan.h"
#include "conformance/report/context.h"
#include "conformance/report/read_json.h"
#include "conformance/run/folder/run_artifacts.h"
#include "conformance/run/folder/run_record.h"
#include "runtime/device/cuda.h"
#include "runtime/error.h"
#include "runtime/text/one_line.h"
#include "runtime/text/patterns.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;

bool chosen(const std::string& patterns, const std::string& id) {
  return patterns.empty() || matches_any(split_at_commas(patterns), id);
}

/// The verdicts of results.jsonl; empty without that file.
std::vector<Verdict> logged_verdicts(const ReportFolder& folder) {
  return fs::exists(folder.verdict_log()) ? read_jsonl(folder.verdict_log()) : std::vector<Verdict>();
}

/// What the run recorded: report.json of a finished run, the logged verdicts of an interrupted one.
RunReport recorded_report(const ReportFolder& folder, const std::vector<Verdict>& logged) {
  if (fs::exists(folder.report())) return read_report_json(folder.report());
  RunReport report;
  report.verdicts = logged;
  return report;
}

void require_transport(const ReportFolder& folder, const RunId& run) {
  if (transport_kind(run.transport)) return;
  throw InputError(folder.run_record().string() + ": transport '" + one_line(run.transport) + "' of " +
                   one_line(to_string(run)) + ": expected threads, mpi, nccl or own");
}

/// A broken link is something as well.
bool is_anything(const fs::path& file) {
  std::error_code none;
  return fs::symlink_status(file, none).type() != fs::file_type::not_found;
}

/// Whether a waiver gave the status.
bool is_waived(Status status) { return status == Status::XPass || status == Status::XFail; }

/// Whether the recorded status may come from the judged one. A waiver makes XFail of Fail and Mistrusted: the other
/// failures that it may expect have no results to judge.
bool may_come_from(Status recorded, Status judged) {
  if (recorded == Status::XPass) return judged == Status::Pass;
  if (recorded == Status::XFail) return judged == Status::Fail || judged == Status::Mistrusted;
  return recorded == judged;
}

/// Whether the run ended without results that could be judged; `any_file`: it has left some.
bool left_nothing(const Verdict& verdict, bool any_file) {
  switch (verdict.finding.status) {
    case Status::Unsupported:
    case Status::Skipped:
      return !any_file;
    case Status::Error:
    case Status::Timeout:
    case Status::NotRun:
      return true;
    case Status::XFail:
      return !verdict.finding.first && verdict.finding.tensors == 0;
    default:
      return false;
  }
}

bool agree(const Verdict& recorded, const Verdict& judged) {
  if (!may_come_from(recorded.finding.status, judged.finding.status)) return false;
  if (recorded.finding.first.has_value() != judged.finding.first.has_value() ||
      recorded.finding.differing != judged.finding.differing)
    return false;
  return recorded.finding.tensors == judged.finding.tensors &&
         (!recorded.finding.first || sentence(*recorded.finding.first) == sentence(*judged.finding.first));
}

/// The last verdict on each run: a case has two if its files changed after the first.
std::map<RunId, const Verdict*> last_of(const std::vector<Verdict>& verdicts) {
  std::map<RunId, const Verdict*> last;
  for (const Verdict& verdict : verdicts) last.insert_or_assign(verdict.run, &verdict);
  return last;
}

/// Where the results were computed, and so must be judged.
c10::Device device_of(const RunRecord& record, const fs::path& folder) {
  const auto device = std::ranges::find(record.options, "device", &std::pair<std::string, std::string>::first);
  try {
    return device::device_named(device == record.options.end() ? RunOptions().device : device->second);
  } catch (const Error& error) {
    throw CannotCheckHere("check: " + folder.string() +
                          " cannot be checked here, its runs were on CUDA devices: " + one_line(error.what()));
  }
}

class Checker {
 public:
  explicit Checker(const CheckOptions& options)
      : options_(options),
        folder_(options.folder),
        record_(read_run_record(folder_.run_record())),
        logged_(logged_verdicts(folder_)),
        recorded_(recorded_report(folder_, logged_)),
        said_(last_of(recorded_.verdicts)),
        backend_(record_.describe.empty()
                     ? BackendDescription()
                     : parse_description(record_.describe, folder_.run_record().string() + ": describe")),
        judge_(record_.seed, device_of(record_, options.folder), backend_.device != BackendDescription().device) {
    if (fs::exists(folder_.corpus())) add_cases(folder_.corpus());
  }

  CheckResult run() {
    if (own_models() && !options_.profile.empty())
      throw InputError("--profile: " + options_.profile + " has cases, and " + record_.backend +
                       " ran models of its own");
    for (const PlannedRun& run : record_.runs) {
      if (!own_models()) require_case(run);
      require_transport(folder_, run.id);
      const RunArtifacts artifacts = artifacts_of(run, folder_, backend_);
      if (run.unsupported.empty()) expected_files_.insert(artifacts.files.begin(), artifacts.files.end());
      expected_files_.insert(artifacts.baseline.begin(), artifacts.baseline.end());
      if (chosen(options_.case_glob, run.id.case_id)) check(run, artifacts);
    }
    if (result_.verdicts.empty())
      throw InputError("--case: no run in '" + options_.folder.string() + "' is of a case that matches '" +
                       options_.case_glob + "'");
    result_.broken = recorded_.broken;
    compare_records();
    strangers();
    if (options_.case_glob.empty()) look_for_extra_files();
    if (!options_.profile.empty()) compare_with_profile();
    for (const auto& [name, value] : run_context("", {}))
      for (const auto& [was_name, was] : record_.options)
        if (name == was_name && name == "libtorch" && was != value)
          result_.notes.push_back("the run had LibTorch " + was + ", this is " + value +
                                  ": same-order results may differ in their last bits");
    return std::move(result_);
  }

 private:
  bool own_models() const { return backend_.level == CaseLevel::Own; }

  void check(const PlannedRun& run, const RunArtifacts& artifacts) {
    const auto found = said_.find(run.id);
    const Verdict* const said = found == said_.end() ? nullptr : found->second;
    const bool is_recorded = said != nullptr;
    const bool any_file = std::any_of(artifacts.files.begin(), artifacts.files.end(),
                                      [](const fs::path& file) { return is_anything(file); });
    Verdict verdict;
    if (is_recorded && left_nothing(*said, any_file)) {
      verdict = *said;
    } else if (!run.unsupported.empty()) {
      verdict.finding.status = Status::Unsupported;
      verdict.finding.reason = run.unsupported;
    } else if (is_recorded && !any_file && said->finding.status == Status::Pass && record_.keeps_failures_only()) {
      verdict = *said;
      ++result_.as_recorded;
    } else if (!is_recorded && !any_file) {
      verdict.finding.status = Status::NotRun;
      verdict.finding.reason = "the run ended before it";
    } else if (!is_recorded && !record_.options.empty() && fs::exists(folder_.verdict_log())) {
      // Its files may be of a half: they count only after the backend said that the case is done. plumbline-case, whose
      // runs have no options, logs only what files do not tell.
      verdict.finding.status = Status::NotRun;
      verdict.finding.reason = "the run ended before it was done";
    } else {
      verdict.finding = judge_artifacts(run, record_.microbatches, folder_, backend_, judge_);
      verdict.run = {run.id.case_id, run.id.schedule};  // a problem names the folder, which says the rest
      compare_with_recorded(verdict, said, artifacts.folder);
    }
    if (is_recorded && is_waived(said->finding.status) && said->waiver.empty())
      result_.problems.push_back(folder_.report().string() + ": " + one_line(to_string(run.id)) + " is recorded as " +
                                 std::string(status_name(said->finding.status)) + ", but without a waiver");
    describe(verdict, run, said);
    result_.verdicts.push_back(std::move(verdict));
  }

  /// Adds a problem where files cannot be judged, or differ from the recorded verdict.
  void compare_with_recorded(Verdict& verdict, const Verdict* said, const fs::path& folder) {
    if (verdict.finding.status == Status::Error) {
      result_.problems.push_back(verdict.finding.reason);
    } else if (said != nullptr && !agree(*said, verdict)) {
      result_.problems.push_back(one_line(folder.string() + ": the run recorded \"" + sentence(*said) +
                                          "\", its files say \"" + sentence(verdict) + "\""));
    } else if (said != nullptr) {
      verdict.finding.status = said->finding.status;  // as waived
      verdict.waiver = said->waiver;
    }
  }

  void require_case(const PlannedRun& run) const {
    try {
      find_case(run.id.case_id);
    } catch (const InputError& error) {
      throw InputError(one_line(folder_.run_record().string() + ": " + error.what()));
    }
  }

  void describe(Verdict& verdict, const PlannedRun& run, const Verdict* said) const {
    verdict.run = run.id;
    if (!own_models()) {
      const reference::Case& c = find_case(run.id.case_id);
      verdict.title = c.title;
      verdict.dtype = to_string(c.dtype);
    }
    verdict.backend = record_.backend;
    if (said == nullptr) return;
    verdict.device = said->device;
    verdict.seconds = said->seconds;
    verdict.repro = said->repro;
  }

  /// What a finished run writes besides its results; its log of verdicts ends with those of its report.
  void compare_records() {
    if (!fs::exists(folder_.report())) return;
    const bool is_ours = !recorded_.context.empty();  // plumbline-case writes no pages
    for (const fs::path& file :
         {folder_.verdict_log(), folder_.junit(), folder_.matrix_picture(), folder_.matrix_page()})
      if (is_ours && !is_anything(file))
        result_.problems.push_back(file.string() + ": is missing; a finished run leaves it");
    const std::map<RunId, const Verdict*> logged = last_of(logged_);
    for (const Verdict& verdict : recorded_.verdicts) {
      const auto last = logged.find(verdict.run);
      if (last != logged.end() && last->second->finding.status != verdict.finding.status)
        result_.problems.push_back(folder_.verdict_log().string() + ": " + one_line(to_string(verdict.run)) + " is " +
                                   std::string(status_name(last->second->finding.status)) + ", in " +
                                   folder_.report().filename().string() + " it is " +
                                   std::string(status_name(verdict.finding.status)));
    }
  }

  /// Verdicts on runs that were never planned.
  void strangers() {
    const std::set<RunId> planned = ids_of(record_.runs);
    for (const Verdict& verdict : recorded_.verdicts)
      if (!planned.contains(verdict.run))
        result_.problems.push_back(folder_.verdict_log().string() + ": a verdict on " +
                                   one_line(verdict.run.case_id + " x " + verdict.run.schedule) +
                                   ", which is not among the runs of run.json");
  }

  void look_for_extra_files() {
    const fs::path results = folder_.results();
    if (!fs::exists(results)) return;
    std::error_code error;
    fs::recursive_directory_iterator entry(results, error);
    for (const fs::recursive_directory_iterator end; !error && entry != end; entry.increment(error))
      if (std::error_code none; !fs::is_directory(entry->symlink_status(none)) && is_result_file(entry->path()) &&
                                !expected_files_.contains(entry->path()))
        result_.problems.push_back(one_line(entry->path().string()) + ": no run of run.json leaves such a file");
    if (error) result_.problems.push_back("cannot read every folder in " + results.string() + ": " + error.message());
  }

  void compare_with_profile() {
    RunOptions options;
    options.selection.profile = options_.profile;
    options.seed = record_.seed;
    options.microbatches = record_.microbatches;
    const RunPlan plan = make_plan(options, *built_models(options.seed));
    const std::set<RunId> there = ids_of(record_.runs);
    std::set<RunId> wanted;
    for (const PlannedRun& run : plan.runs) {
      if (!chosen(options_.case_glob, run.id.case_id)) continue;
      wanted.insert(run.id);
      if (!there.contains(run.id)) result_.missing.push_back(to_string(run.id));
    }
    for (const PlannedRun& run : record_.runs)
      result_.beyond_profile += chosen(options_.case_glob, run.id.case_id) && !wanted.contains(run.id) ? 1 : 0;
  }

  const CheckOptions& options_;
  const ReportFolder folder_;
  RunRecord record_;
  std::vector<Verdict> logged_;
  const RunReport recorded_;
  const std::map<RunId, const Verdict*> said_;  ///< of recorded_
  BackendDescription backend_;
  Judge judge_;
  std::set<fs::path> expected_files_;
  CheckResult result_;
};

}  // namespace

CheckResult check_folder(const CheckOptions& options) {
  std::error_code error;
  if (!fs::is_directory(options.folder, error)) throw InputError("check: no folder '" + options.folder.string() + "'");
  for (const fs::path& folder : {options.folder, ReportFolder(options.folder).results()})
    if (fs::directory_iterator(folder, error); error == std::errc::permission_denied)
      throw InputError("check: cannot read " + folder.string() + ": " + error.message());
  return Checker(options).run();
}

int exit_code(const CheckResult& result) {
  if (!result.problems.empty()) return 2;
  RunReport report;
  report.verdicts = result.verdicts;
  report.broken = result.broken;
  const int code = exit_code(report);
  return result.missing.empty() || code == 1 ? code : 1;
}

}  // namespace plumbline::conformance
