#include "conformance/session.h"

#include <unistd.h>

#include <cstring>
#include <ostream>

#include "conformance/backend/throughput.h"
#include "conformance/context.h"
#include "conformance/corpus.h"
#include "conformance/report/json.h"
#include "conformance/report/junit.h"
#include "conformance/report/matrix_svg.h"
#include "conformance/report/text.h"
#include "conformance/report/write_text.h"
#include "runtime/error.h"

namespace plumbline {
namespace {

using Seconds = std::chrono::duration<double>;

double since(std::chrono::steady_clock::time_point begin) {
  return Seconds(std::chrono::steady_clock::now() - begin).count();
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

Session::Session(const RunOptions& options, const Job& job, std::ostream& out)
    : options_(options),
      job_(job),
      out_(out),
      judge_(job.ranks, job.seed),
      results_(options.report / "results"),
      verdicts_(job.cases.size()),
      begin_(std::chrono::steady_clock::now()),
      case_begin_(begin_),
      progress_(out, {static_cast<int>(job.cases.size()), is_live_terminal(STDOUT_FILENO), wants_colour(STDOUT_FILENO),
                      terminal_columns(STDOUT_FILENO)}) {}

void Session::begins(size_t index) {
  case_begin_ = std::chrono::steady_clock::now();
  progress_.working_on(job_.cases[index].id + " x " + job_.cases[index].schedule);
}

void Session::done(size_t index) {
  const JobCase& item = job_.cases[index];
  CaseVerdict verdict = empty_verdict(index);
  const std::string repro = verdict.repro;
  std::string note;
  try {
    const Case c = with_microbatches(find_case(item.id), job_.microbatches, note);
    std::vector<std::filesystem::path> files;
    for (int r = 0; r < job_.ranks; ++r) files.push_back(result_path(results_, item, r));
    verdict = judge_.judge(c, item.schedule, merge_rank_files(files));
  } catch (const std::exception& error) {
    verdict.status = Status::Error;
    verdict.reason = one_line(error.what());
  }
  verdict.repro = repro;
  if (verdict.reason.empty()) verdict.reason = note;
  finish(index, std::move(verdict));
}

void Session::failed(size_t index, Status status, const std::string& reason) {
  CaseVerdict verdict = empty_verdict(index);
  verdict.status = status;
  verdict.reason = one_line(reason);
  finish(index, std::move(verdict));
}

void Session::measured(size_t index, const JobThroughput& item) {
  try {
    throughput_.push_back(read_throughput(item, index, job_.ranks, results_));
  } catch (const std::exception& error) {
    broken("the measurement of " + item.schedule + " cannot be read: " + one_line(error.what()));
  }
}

void Session::broken(const std::string& reason) {
  broken_ = true;
  progress_.note("BROKEN " + reason);
}

CaseVerdict Session::empty_verdict(size_t index) const {
  const JobCase& item = job_.cases[index];
  const Case& c = find_case(item.id);
  CaseVerdict verdict;
  verdict.case_id = item.id;
  verdict.title = c.title;
  verdict.schedule = item.schedule;
  verdict.truth = c.truth;
  verdict.reason = "the run ended before it";
  verdict.repro = "plumbline run --case " + item.id + " --schedule " + item.schedule + " --transport " +
                  transport_name(options_.transport) + " --ranks " + std::to_string(job_.ranks) + " --seed " +
                  std::to_string(job_.seed);
  if (job_.microbatches) verdict.repro += " --microbatches " + std::to_string(job_.microbatches);
  if (!job_.mutant.empty()) verdict.repro += " --mutant " + job_.mutant;
  if (job_.recompute != "never") verdict.repro += " --recompute " + job_.recompute;
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
  report.context = run_context(options_.command_line, {{"backend", "runtime"},
                                                       {"transport", transport_name(options_.transport)},
                                                       {"ranks", std::to_string(job_.ranks)},
                                                       {"seed", std::to_string(job_.seed)},
                                                       {"profile", options_.profile},
                                                       {"mutant", job_.mutant.empty() ? "none" : job_.mutant},
                                                       {"recompute", job_.recompute}});
  for (size_t i = 0; i < verdicts_.size(); ++i) report.verdicts.push_back(judged(i) ? verdicts_[i] : empty_verdict(i));
  report.throughput = throughput_;
  report.wall_seconds = since(begin_);
  print(report);
  write_report_json(options_.report / "report.json", report);
  write_junit(options_.report / "junit.xml", report);
  write_text_file(options_.report / "matrix.svg", matrix_svg(report));
  const std::filesystem::path folder = options_.report.lexically_normal();
  out_ << "\nreport: " << folder.string() << " (matrix.svg, report.json, junit.xml, results.jsonl, results/)\n";
  out_.flush();
  return broken_ ? 1 : exit_code(report);
}

void Session::print(const RunReport& report) {
  constexpr int kMostShown = 10;
  out_ << '\n' << matrix_text(report.verdicts, {wants_colour(STDOUT_FILENO), terminal_columns(STDOUT_FILENO)});
  int failures = 0;
  for (const CaseVerdict& verdict : report.verdicts) {
    if (!is_failure(verdict.status) && verdict.status != Status::NotRun) continue;
    if (++failures <= kMostShown) out_ << '\n' << sentence(verdict) << "\n  repeat: " << verdict.repro << '\n';
  }
  if (failures > kMostShown) out_ << "\n... and " << failures - kMostShown << " more in report.json\n";
  if (!report.throughput.empty()) out_ << '\n' << throughput_text(report.throughput);
  out_.flush();
}

}  // namespace plumbline
