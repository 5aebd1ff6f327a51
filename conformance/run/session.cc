#include "conformance/run/session.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ostream>
#include <thread>

#include "conformance/backend/predicted_trace.h"
#include "conformance/corpus/corpus.h"
#include "conformance/protocol/process.h"
#include "conformance/report/context.h"
#include "conformance/report/json.h"
#include "conformance/report/junit.h"
#include "conformance/report/matrix_svg.h"
#include "conformance/report/page/page.h"
#include "conformance/report/read_json.h"
#include "conformance/report/text.h"
#include "conformance/report/timeline_svg.h"
#include "conformance/run/left_by_run.h"
#include "conformance/run/throughput.h"
#include "runtime/error.h"
#include "runtime/fnv1a.h"
#include "runtime/join.h"
#include "runtime/one_line.h"
#include "runtime/write_text.h"

namespace plumbline::conformance {
namespace {

using Seconds = std::chrono::duration<double>;

double since(std::chrono::steady_clock::time_point begin) {
  return Seconds(std::chrono::steady_clock::now() - begin).count();
}

struct Places {
  std::string ranks, transports;  ///< "2, 4, 8", "threads, mpi"
};

Places places_of(const RunPlan& plan) {
  std::set<int> ranks;
  std::set<TransportKind> transports;
  for (const PlannedRun& run : plan.runs) {
    ranks.insert(run.ranks);
    transports.insert(run.transport);
  }
  std::vector<std::string> numbers, names;
  for (const int n : ranks) numbers.push_back(std::to_string(n));
  for (const TransportKind transport : transports) names.push_back(transport_name(transport));
  return {join(numbers), join(names)};
}

/// What there is to run: the corpus, or the backend's own models.
std::vector<std::string> case_ids(const BackendDescription& backend) {
  if (backend.level == CaseLevel::Own) return backend.models;
  std::vector<std::string> ids;
  for (const reference::Case& c : corpus()) ids.push_back(c.id);
  return ids;
}

/// A file that decides verdicts, with a digest (FNV-1a) of what is in it: a changed one is another run's.
std::string with_digest(const std::filesystem::path& path) {
  if (path.empty()) return {};
  return path.string() + " (" + std::to_string(fnv1a(read_file(path))) + ")";
}

/// What an interrupted run in `report` came to, if it was this one. Takes away the line that it did not finish.
std::vector<CaseVerdict> earlier_verdicts(const std::filesystem::path& report, const RunRecord& record) {
  const std::filesystem::path run = report / "run.json", log = report / "results.jsonl";
  if (!std::filesystem::exists(run) || !std::filesystem::exists(log))
    throw InputError("--resume: no interrupted run in '" + report.string() +
                     "' (it holds no run.json and results.jsonl)");
  if (const std::string different = difference(read_run_record(run), record); !different.empty())
    throw InputError("--resume: this is another run than the one in '" + report.string() + "': " + different);
  size_t complete = 0;
  std::vector<CaseVerdict> verdicts = read_jsonl(log, &complete);
  for (const CaseVerdict& verdict : verdicts)
    if (std::none_of(record.runs.begin(), record.runs.end(), [&](const RecordedRun& r) { return is_of(verdict, r); }))
      throw InputError(log.string() + ": " + one_line(verdict.case_id + " x " + verdict.schedule) +
                       " is not among the runs of " + run.string());
  std::filesystem::resize_file(log, complete);
  return verdicts;
}

std::string timeline_of(const JobThroughput& item, size_t index, const RunGroup& group,
                        const std::filesystem::path& results) {
  const schedule::Trace measured = read_measured_trace(index, group.job.ranks, results);
  const std::vector<schedule::Trace> traces = {predicted_trace(item, measured), measured};
  return timeline_svg(traces, {.title = item.schedule + ", " + std::to_string(group.job.ranks) + " ranks, " +
                                        (item.model.empty() ? "stages that sleep" : item.model),
                               .unit = "ms"});
}

BackendDescription or_runtime(BackendDescription backend) {
  if (backend.name.empty()) backend.name = "runtime", backend.version = plumbline_version();
  return backend;
}

}  // namespace

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
                                               {"waivers", with_digest(options.waivers)}});
  for (const PlannedRun& run : plan.runs)
    record.runs.push_back(
        {run.item.id, run.item.schedule, run.item.csv, run.ranks, transport_name(run.transport), run.unsupported});
  return record;
}

std::vector<CaseVerdict> open_report_folder(const RunOptions& options, const RunPlan& plan,
                                            const BackendDescription& backend) {
  const std::filesystem::path& report = options.report;
  std::error_code error;
  std::filesystem::create_directories(report, error);
  if (error || !std::filesystem::is_directory(report))
    throw InputError("--report: folder '" + report.string() + "' cannot be made" +
                     (error ? " (" + error.message() + ")" : ""));
  if (access(report.c_str(), R_OK | W_OK | X_OK) != 0)
    throw InputError("--report: folder '" + report.string() + "' cannot be read and written (" + std::strerror(errno) +
                     ")");
  if (!options.waivers.empty())
    read_waivers(options.waivers, case_ids(backend));  // refused before anything is taken away
  const RunRecord record = record_of(options, plan, backend);
  if (options.resume) return earlier_verdicts(report, record);
  const std::filesystem::path results = report / "results", log = report / "results.jsonl";
  if (std::filesystem::exists(results) && !std::filesystem::exists(log))
    throw InputError("--report: '" + results.string() +
                     "' is there already and no earlier report of ours; give another folder");
  for (const char* stale : {"results", "timelines", "report.json", "junit.xml", "matrix.svg", "matrix.html"}) {
    std::filesystem::remove_all(report / stale, error);
    if (error)
      throw InputError("--report: '" + (report / stale).string() + "' cannot be emptied (" + error.message() + ")");
  }
  write_run_record(report / "run.json", record);
  write_text_file(log, "");
  return {};
}

std::filesystem::path results_folder(int ranks, TransportKind transport) {
  return std::filesystem::path("results") / (transport_name(transport) + "-" + std::to_string(ranks));
}

Session::Session(const RunOptions& options, const RunPlan& plan, std::ostream& out, BackendDescription backend,
                 std::vector<CaseVerdict> earlier)
    : options_(options),
      plan_(plan),
      out_(out),
      judge_(options.seed),
      waivers_(options.waivers.empty() ? std::vector<Waiver>() : read_waivers(options.waivers, case_ids(backend)),
               today()),
      backend_(or_runtime(std::move(backend))),
      verdicts_(plan.runs.size()),
      begin_(std::chrono::steady_clock::now()),
      case_begin_(begin_),
      progress_(out, {static_cast<int>(plan.runs.size()), is_live_terminal(STDOUT_FILENO), wants_colour(STDOUT_FILENO),
                      terminal_columns(STDOUT_FILENO)}) {
  const RunRecord record = record_of(options, plan, backend_);
  for (CaseVerdict& verdict : earlier) {
    const auto run = std::find_if(record.runs.begin(), record.runs.end(),
                                  [&](const RecordedRun& recorded) { return is_of(verdict, recorded); });
    PLUMBLINE_CHECK(run != record.runs.end(), verdict.case_id);
    const auto index = static_cast<size_t>(run - record.runs.begin());
    waivers_.applied(verdict, backend_.version);  // it is waived already; this one notes which waivers were of use
    verdicts_[index] = std::move(verdict);
    judged_.insert(index);
  }
  if (!judged_.empty())
    progress_.note("resumed: " + std::to_string(judged_.size()) + " of " + std::to_string(plan.runs.size()) +
                   " were judged before");
  for (size_t i = 0; i < plan.runs.size(); ++i)
    if (!judged(i) && !plan.runs[i].unsupported.empty()) failed(i, Status::Unsupported, plan.runs[i].unsupported);
}

void Session::begins(size_t index) {
  case_begin_ = std::chrono::steady_clock::now();
  const PlannedRun& run = plan_.runs[index];
  progress_.working_on(run.item.id + " x " + run.item.schedule + " (" + place_of(empty_verdict(index)) + ")");
}

void Session::done(size_t index) {
  const PlannedRun& run = plan_.runs[index];
  const CaseVerdict empty = empty_verdict(index);
  CaseVerdict verdict =
      judge_left({options_.report, options_.microbatches, run.item, run.ranks, run.transport}, backend_, judge_);
  verdict.repro = empty.repro;
  verdict.ranks = empty.ranks;
  verdict.transport = empty.transport;
  verdict.backend = empty.backend;
  verdict.device = empty.device;
  finish(index, std::move(verdict));
}

void Session::failed(size_t index, Status status, const std::string& reason) {
  CaseVerdict verdict = empty_verdict(index);
  verdict.status = status;
  verdict.reason = one_line(reason);
  finish(index, std::move(verdict));
}

void Session::measured(size_t index, const JobThroughput& item, const RunGroup& group) {
  try {
    const std::filesystem::path files = results(group.job.ranks, group.transport);
    throughput_.push_back(read_throughput(item, index, group.job.ranks, files));
    if (item.trace) throughput_.back().timeline = timeline_of(item, index, group, files);
  } catch (const std::exception& error) {
    broken("the measurement of " + item.schedule + " cannot be read: " + one_line(error.what()));
  }
}

void Session::broken(const std::string& reason) {
  broken_.push_back(one_line(reason));
  progress_.note("BROKEN " + reason);
}

void Session::not_started(const std::string& reason) {
  if (not_started_.empty()) progress_.note("NOT STARTED " + one_line(reason));
  not_started_ = one_line(reason);
}

CaseVerdict Session::empty_verdict(size_t index) const {
  const PlannedRun& run = plan_.runs[index];
  CaseVerdict verdict;
  verdict.case_id = run.item.id;
  verdict.schedule = run.item.schedule;
  verdict.backend = backend_.name;
  verdict.device = "cpu";
  verdict.ranks = run.ranks;
  verdict.transport = transport_name(run.transport);
  if (backend_.level == CaseLevel::Own) {
    verdict.truth = reference::Truth::SameOrder;
  } else {
    const reference::Case& c = find_case(run.item.id);
    verdict.title = c.title;
    verdict.dtype = dtype_text(c.dtype);
    verdict.truth = c.truth;
  }
  verdict.reason = not_started_.empty() ? "the run ended before it" : not_started_;
  verdict.repro = "plumbline run --case " + run.item.id + " --schedule " + shell_word(run.item.schedule) +
                  (run.transport == TransportKind::Own ? " --backend " + shell_word(options_.backend)
                                                       : " --transport " + verdict.transport) +
                  " --ranks " + std::to_string(run.ranks) + " --seed " + std::to_string(options_.seed);
  if (options_.microbatches) verdict.repro += " --microbatches " + std::to_string(options_.microbatches);
  if (!options_.mutant.empty()) verdict.repro += " --mutant " + options_.mutant;
  if (options_.recompute != "never") verdict.repro += " --recompute " + options_.recompute;
  if (options_.remat.on())
    verdict.repro += " --remat " + options_.remat.mode + " --remat-policy " + shell_word(options_.remat.policy);
  if (!options_.waivers.empty()) verdict.repro += " --waivers " + shell_word(options_.waivers.string());
  return verdict;
}

void Session::finish(size_t index, CaseVerdict verdict) {
  verdict.seconds = since(case_begin_);
  verdict = waivers_.applied(std::move(verdict), backend_.version);
  append_jsonl(options_.report / "results.jsonl", verdict);
  progress_.finished(verdict);
  verdicts_[index] = std::move(verdict);
  judged_.insert(index);
}

int Session::report() {
  RunReport report;
  for (const std::string& expired : waivers_.expired()) broken(expired);
  report.notes = waivers_.unused();
  report.backend = {backend_.name, backend_.version, "cpu", description_text(backend_)};
  report.environment = run_environment();
  const Places places = places_of(plan_);
  report.context = run_context(options_.command_line, {{"backend", backend_.name + " " + backend_.version},
                                                       {"transport", places.transports},
                                                       {"ranks", places.ranks},
                                                       {"seed", std::to_string(options_.seed)},
                                                       {"profile", options_.profile},
                                                       {"mutant", options_.mutant.empty() ? "none" : options_.mutant},
                                                       {"recompute", options_.recompute},
                                                       {"remat", to_string(options_.remat)}});
  for (size_t i = 0; i < verdicts_.size(); ++i) report.verdicts.push_back(judged(i) ? verdicts_[i] : empty_verdict(i));
  report.throughput = throughput_;
  report.broken = broken_;
  report.wall_seconds = since(begin_);
  print(report);
  write_report_json(options_.report / "report.json", report);
  write_junit(options_.report / "junit.xml", report);
  write_text_file(options_.report / "matrix.svg", matrix_svg(report));
  const std::filesystem::path folder = options_.report.lexically_normal();
  write_text_file(options_.report / "matrix.html", report_page({{page_label(folder), report}}));
  out_ << "\nreport: " << folder.string()
       << " (matrix.html, matrix.svg, report.json, junit.xml, results.jsonl, results/)\n";
  out_.flush();
  return exit_code(report);
}

void Session::print(const RunReport& report) {
  constexpr int kMostShown = 10;
  out_ << '\n' << matrix_text(report.verdicts, {wants_colour(STDOUT_FILENO), terminal_columns(STDOUT_FILENO)});
  int failures = 0;
  for (const CaseVerdict& verdict : report.verdicts) {
    if (!is_failure(verdict.status) && verdict.status != Status::NotRun) continue;
    if (verdict.status == Status::NotRun && verdict.reason == not_started_) continue;  // it has been told
    if (++failures <= kMostShown) out_ << '\n' << sentence(verdict) << "\n  repeat: " << verdict.repro << '\n';
  }
  if (failures > kMostShown) out_ << "\n... and " << failures - kMostShown << " more in report.json\n";
  for (const std::string& note : report.notes) out_ << "\nnote: " << note << '\n';
  if (!report.throughput.empty())
    out_ << '\n' << throughput_text(report.throughput, std::thread::hardware_concurrency());
  out_.flush();
}

}  // namespace plumbline::conformance
