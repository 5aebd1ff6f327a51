#include "conformance/run/folder/open_report.h"

#include <unistd.h>

#include <cstring>
#include <set>

#include "conformance/corpus/case_file.h"
#include "conformance/corpus/corpus.h"
#include "conformance/judge/verdict/waivers.h"
#include "conformance/protocol/report_folder.h"
#include "conformance/report/context.h"
#include "conformance/report/read_json.h"
#include "runtime/error.h"
#include "runtime/fnv1a.h"
#include "runtime/io/tensor_file.h"
#include "runtime/io/write_file.h"
#include "runtime/text/one_line.h"

namespace plumbline::conformance {
namespace {

/// A file on which verdicts depend, with a digest (FNV-1a) of its content: a changed file makes another run.
std::string with_digest(const std::filesystem::path& path) {
  if (path.empty()) return {};
  return path.string() + " (" + std::to_string(fnv1a(read_file(path))) + ")";
}

using CaseTexts = std::vector<std::pair<std::filesystem::path, std::string>>;

/// The user's files of cases by name.
CaseTexts case_texts(const RunOptions& options) {
  CaseTexts texts;
  if (options.corpus.empty()) return texts;
  for (const std::filesystem::path& file : case_files(options.corpus))
    texts.emplace_back(file.filename(), read_file(file));
  return texts;
}

std::string with_digest(const std::filesystem::path& folder, const CaseTexts& texts) {
  std::string all;
  for (const auto& [name, text] : texts) all += name.string() + '\n' + text;
  return texts.empty() ? "" : folder.string() + " (" + std::to_string(fnv1a(all)) + ")";
}

/// The verdicts of the interrupted run in `report`, if it was this one. Removes its unfinished last line.
std::vector<Verdict> earlier_verdicts(const ReportFolder& report, const RunRecord& record) {
  const std::filesystem::path run = report.run_record(), log = report.verdict_log();
  if (!std::filesystem::exists(run) || !std::filesystem::exists(log))
    throw InputError("--resume: no interrupted run in '" + report.path().string() +
                     "' (it holds no run.json and results.jsonl)");
  if (const std::string different = difference(read_run_record(run), record); !different.empty())
    throw InputError("--resume: this is another run than the one in '" + report.path().string() + "': " + different);
  size_t complete = 0;
  std::vector<Verdict> verdicts = read_jsonl(log, &complete);
  const std::set<RunId> planned = ids_of(record.runs);
  for (const Verdict& verdict : verdicts)
    if (!planned.contains(verdict.run))
      throw InputError(log.string() + ": " + one_line(verdict.run.case_id + " x " + verdict.run.schedule) +
                       " is not among the runs of " + run.string());
  std::filesystem::resize_file(log, complete);
  return verdicts;
}

}  // namespace

BackendDescription or_runtime(BackendDescription backend) {
  if (backend.name.empty()) backend.name = kRuntime, backend.version = plumbline_version();
  return backend;
}

std::vector<std::string> case_ids(const BackendDescription& backend) {
  if (backend.level == CaseLevel::Own) return backend.models;
  std::vector<std::string> ids;
  for (const reference::Case& c : corpus()) ids.push_back(c.id);
  return ids;
}

RunRecord record_of(const RunOptions& options, const RunPlan& plan, const BackendDescription& backend) {
  RunRecord record;
  record.backend = or_runtime(backend).name;
  if (!backend.name.empty()) record.describe = description_text(backend);
  record.seed = options.seed;
  record.microbatches = options.microbatches;
  for (const auto& [name, value] : run_context("", {}))
    if (name == "version" || name == "commit" || name == "libtorch") record.options.emplace_back(name, value);
  record.options.insert(record.options.end(), {{"mutant", options.mutant},
                                               {"recompute", options.recompute},
                                               {"remat", to_string(options.remat)},
                                               {"wire", options.wire},
                                               {"device", options.device},
                                               {kKeepOption, options.keep == Keep::Failures ? kKeepFailures : "all"},
                                               {"waivers", with_digest(options.waivers)},
                                               {"corpus", with_digest(options.corpus, case_texts(options))}});
  record.runs = plan.runs;
  return record;
}

void make_report_folder(const std::filesystem::path& report) {
  std::error_code error;
  std::filesystem::create_directories(report, error);
  if (error || !std::filesystem::is_directory(report))
    throw InputError("--report: folder '" + report.string() + "' cannot be made" +
                     (error ? " (" + error.message() + ")" : ""));
  if (access(report.c_str(), R_OK | W_OK | X_OK) != 0)
    throw InputError("--report: folder '" + report.string() + "' cannot be read and written (" + std::strerror(errno) +
                     ")");
}

OpenReport open_report_folder(const RunOptions& options, const RunPlan& plan, const BackendDescription& backend) {
  const std::filesystem::path& report = options.report;
  const ReportFolder folder(report);
  make_report_folder(report);
  ReportLock lock(report);
  if (!options.waivers.empty()) read_waivers(options.waivers, case_ids(backend));  // refused before anything is removed
  const CaseTexts cases = case_texts(options);                                     // perhaps of an earlier report here
  const RunRecord record = record_of(options, plan, backend);
  if (options.resume) return {std::move(lock), earlier_verdicts(folder, record)};
  const std::filesystem::path log = folder.verdict_log();
  std::vector<std::filesystem::path> ours = folder.outcome();
  ours.push_back(folder.run_record());
  const bool is_a_report = std::filesystem::exists(log);
  for (const std::filesystem::path& there : ours)
    if (!is_a_report && std::filesystem::exists(there))
      throw InputError("--report: '" + there.string() +
                       "' is there already and no earlier report of ours; give another folder");
  for (const std::filesystem::path& stale : folder.outcome()) {
    std::error_code error;
    std::filesystem::remove_all(stale, error);
    if (error) throw InputError("--report: '" + stale.string() + "' cannot be emptied (" + error.message() + ")");
  }
  if (!cases.empty()) std::filesystem::create_directories(folder.corpus());
  for (const auto& [name, text] : cases) write_file(folder.corpus() / name, text);
  write_run_record(folder.run_record(), record);
  write_file(log, "");
  return {std::move(lock), {}};
}

}  // namespace plumbline::conformance
