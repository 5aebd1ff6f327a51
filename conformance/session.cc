#include "conformance/session.h"

#include <unistd.h>

#include <cstring>
#include <ostream>

#include "conformance/backend/throughput.h"
#include "conformance/chosen_schedule.h"
#include "conformance/context.h"
#include "conformance/corpus.h"
#include "conformance/process.h"
#include "conformance/report/json.h"
#include "conformance/report/junit.h"
#include "conformance/report/matrix_svg.h"
#include "conformance/report/text.h"
#include "conformance/report/write_text.h"
#include "runtime/error.h"
#include "runtime/join.h"

namespace plumbline {
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

}  // namespace

void prepare_report_folder(const std::filesystem::path& report) {
  std::error_code error;
  std::filesystem::create_directories(report, error);
  if (error || !std::filesystem::is_directory(report))
    throw InputError("--report: folder '" + report.string() + "' cannot be made" +
                     (error ? " (" + error.message() + ")" : ""));
  if (access(report.c_str(), R_OK | W_OK | X_OK) != 0)
    throw InputError("--report: folder '" + report.string() + "' cannot be read and written (" + std::strerror(errno) +
                     ")");
  const std::filesystem::path results = report / "results", log = report / "results.jsonl";
  if (std::filesystem::exists(results) && !std::filesystem::exists(log))
    throw InputError("--report: '" + results.string() +
                     "' is there already and no earlier report of ours; give another folder");
  std::filesystem::remove_all(results, error);
  if (error) throw InputError("--report: '" + results.string() + "' cannot be emptied (" + error.message() + ")");
  write_text_file(log, "");
}

std::filesystem::path results_folder(int ranks, TransportKind transport) {
  return std::filesystem::path("results") / (transport_name(transport) + "-" + std::to_string(ranks));
}

Session::Session(const RunOptions& options, const RunPlan& plan, std::ostream& out)
    : options_(options),
      plan_(plan),
      out_(out),
      judge_(options.seed),
      verdicts_(plan.runs.size()),
      begin_(std::chrono::steady_clock::now()),
      case_begin_(begin_),
      progress_(out, {static_cast<int>(plan.runs.size()), is_live_terminal(STDOUT_FILENO), wants_colour(STDOUT_FILENO),
                      terminal_columns(STDOUT_FILENO)}) {
  for (size_t i = 0; i < plan.runs.size(); ++i)
    if (!plan.runs[i].unsupported.empty()) failed(i, Status::Unsupported, plan.runs[i].unsupported);
}

void Session::begins(size_t index) {
  case_begin_ = std::chrono::steady_clock::now();
  const PlannedRun& run = plan_.runs[index];
  progress_.working_on(run.item.id + " x " + run.item.schedule + " (" + place_of(empty_verdict(index)) + ")");
}

void Session::done(size_t index) {
  const PlannedRun& run = plan_.runs[index];
  CaseVerdict verdict = empty_verdict(index);
  const CaseVerdict empty = verdict;
  std::string note;
  try {
    Case c = with_microbatches(find_case(run.item.id), options_.microbatches, note);
    const std::filesystem::path folder = results(run.ranks, run.transport);
    std::vector<std::filesystem::path> files;
    if (run.transport == TransportKind::Own) {
      demote(c, backend_, note);
      files = result_files(folder, run.item);
    } else {
      for (int r = 0; r < run.ranks; ++r) files.push_back(result_path(folder, run.item, r));
    }
    const Schedule schedule = make_schedule(ChosenSchedule{run.item.schedule, run.item.csv}, run.ranks, c.microbatches);
    verdict = judge_.judge(c, schedule, merge_rank_files(files), backend_.delivers);
  } catch (const std::exception& error) {
    verdict.status = Status::Error;
    verdict.reason = one_line(error.what());
  }
  verdict.repro = empty.repro;
  verdict.ranks = empty.ranks;
  verdict.transport = empty.transport;
  if (verdict.reason.empty()) verdict.reason = note;
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
    throughput_.push_back(read_throughput(item, index, group.job.ranks, results(group.job.ranks, group.transport)));
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
  const Case& c = find_case(run.item.id);
  CaseVerdict verdict;
  verdict.case_id = run.item.id;
  verdict.title = c.title;
  verdict.schedule = run.item.schedule;
  verdict.ranks = run.ranks;
  verdict.transport = transport_name(run.transport);
  verdict.truth = c.truth;
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
  return verdict;
}

void Session::finish(size_t index, CaseVerdict verdict) {
  verdict.seconds = since(case_begin_);
  append_jsonl(options_.report / "results.jsonl", verdict);
  progress_.finished(verdict);
  verdicts_[index] = std::move(verdict);
  judged_.insert(index);
}

int Session::report() {
  RunReport report;
  const Places places = places_of(plan_);
  report.context =
      run_context(options_.command_line,
                  {{"backend", options_.backend == "runtime" ? "runtime" : backend_.name + " " + backend_.version},
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
  out_ << "\nreport: " << folder.string() << " (matrix.svg, report.json, junit.xml, results.jsonl, results/)\n";
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
  if (!report.throughput.empty()) out_ << '\n' << throughput_text(report.throughput);
  out_.flush();
}

}  // namespace plumbline
