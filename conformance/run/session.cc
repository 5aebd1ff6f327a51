#include "conformance/run/session.h"

#include <unistd.h>

#include <algorithm>
#include <ostream>
#include <thread>

#include "conformance/corpus/corpus.h"
#include "conformance/protocol/process.h"
#include "conformance/report/context.h"
#include "conformance/report/json.h"
#include "conformance/report/junit.h"
#include "conformance/report/page/page.h"
#include "conformance/report/svg/matrix_svg.h"
#include "conformance/report/svg/timeline_svg.h"
#include "conformance/report/text.h"
#include "conformance/run/open_report.h"
#include "conformance/run/run_artifacts.h"
#include "runtime/error.h"
#include "runtime/fnv1a.h"
#include "runtime/io/write_text.h"
#include "runtime/text/join.h"
#include "runtime/text/one_line.h"

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
    ranks.insert(run.id.ranks);
    transports.insert(transport_kind(run.id.transport).value());
  }
  std::vector<std::string> numbers, names;
  for (const int n : ranks) numbers.push_back(std::to_string(n));
  for (const TransportKind transport : transports) names.push_back(transport_name(transport));
  return {join(numbers), join(names)};
}

}  // namespace

Session::Session(const RunOptions& options, const RunPlan& plan, std::ostream& out, BackendDescription backend,
                 std::vector<Verdict> earlier)
    : options_(options),
      plan_(plan),
      folder_(options.report),
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
  for (Verdict& verdict : earlier) {
    const auto run = std::ranges::find(plan.runs, verdict.run, &PlannedRun::id);
    PLUMBLINE_CHECK(run != plan.runs.end(), to_string(verdict.run));
    const auto index = static_cast<size_t>(run - plan.runs.begin());
    waivers_.applied(verdict, backend_.version);  // its waiver was applied before; this call counts the waiver as used
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
  progress_.working_on(to_string(plan_.runs[index].id));
}

void Session::done(size_t index) {
  Verdict verdict = empty_verdict(index);
  verdict.finding = judge_artifacts(plan_.runs[index], options_.microbatches, folder_, backend_, judge_);
  finish(index, std::move(verdict));
}

void Session::failed(size_t index, Status status, const std::string& reason) {
  Verdict verdict = empty_verdict(index);
  verdict.finding.status = status;
  verdict.finding.reason = one_line(reason);
  finish(index, std::move(verdict));
}

void Session::measured(const ThroughputRun& run) {
  throughput_ = run.measured;
  if (!run.failed.empty()) broken(run.failed);
}

void Session::broken(const std::string& reason) {
  broken_.push_back(one_line(reason));
  progress_.note("BROKEN " + reason);
}

void Session::not_started(const std::string& reason) {
  if (not_started_.empty()) progress_.note("NOT STARTED " + one_line(reason));
  not_started_ = one_line(reason);
}

Verdict Session::empty_verdict(size_t index) const {
  const RunId& run = plan_.runs[index].id;
  Verdict verdict;
  verdict.run = run;
  verdict.backend = backend_.name;
  verdict.device = "cpu";
  if (backend_.level == CaseLevel::Own) {
    verdict.finding.truth = reference::Truth::SameOrder;
  } else {
    const reference::Case& c = find_case(run.case_id);
    verdict.title = c.title;
    verdict.dtype = dtype_text(c.dtype);
    verdict.finding.truth = c.truth;
  }
  verdict.finding.reason = not_started_.empty() ? "the run ended before it" : not_started_;
  verdict.repro =
      "plumbline run --case " + run.case_id + " --schedule " + shell_word(run.schedule) +
      (run.transport == transport_name(TransportKind::Own) ? " --backend " + shell_word(options_.backend.given)
                                                           : " --transport " + run.transport) +
      " --ranks " + std::to_string(run.ranks) + " --seed " + std::to_string(options_.seed);
  if (options_.microbatches) verdict.repro += " --microbatches " + std::to_string(options_.microbatches);
  if (!options_.mutant.empty()) verdict.repro += " --mutant " + options_.mutant;
  if (options_.recompute != "never") verdict.repro += " --recompute " + options_.recompute;
  if (options_.remat.on())
    verdict.repro += " --remat " + options_.remat.mode + " --remat-policy " + shell_word(options_.remat.policy);
  if (!options_.waivers.empty()) verdict.repro += " --waivers " + shell_word(options_.waivers.string());
  return verdict;
}

void Session::finish(size_t index, Verdict verdict) {
  verdict.seconds = since(case_begin_);
  verdict = waivers_.applied(std::move(verdict), backend_.version);
  append_jsonl(folder_.verdict_log(), verdict);
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
                                                       {"profile", options_.selection.profile_or_default()},
                                                       {"mutant", options_.mutant.empty() ? "none" : options_.mutant},
                                                       {"recompute", options_.recompute},
                                                       {"remat", to_string(options_.remat)}});
  for (size_t i = 0; i < verdicts_.size(); ++i) report.verdicts.push_back(judged(i) ? verdicts_[i] : empty_verdict(i));
  report.throughput = throughput_;
  report.broken = broken_;
  report.wall_seconds = since(begin_);
  print(report);
  write_report_json(folder_.report(), report);
  write_junit(folder_.junit(), report);
  write_text_file(folder_.matrix_picture(), matrix_svg(report));
  const std::filesystem::path folder = options_.report.lexically_normal();
  write_text_file(folder_.matrix_page(), report_page({{page_label(folder), report}}));
  out_ << "\nreport: " << folder.string()
       << " (matrix.html, matrix.svg, report.json, junit.xml, results.jsonl, results/)\n";
  out_.flush();
  return exit_code(report);
}

void Session::print(const RunReport& report) {
  constexpr int kMostShown = 10;
  out_ << '\n' << matrix_text(report.verdicts, {wants_colour(STDOUT_FILENO), terminal_columns(STDOUT_FILENO)});
  int failures = 0;
  for (const Verdict& verdict : report.verdicts) {
    if (!is_failure(verdict.finding.status) && verdict.finding.status != Status::NotRun) continue;
    if (verdict.finding.status == Status::NotRun && verdict.finding.reason == not_started_) continue;  // printed before
    if (++failures <= kMostShown) out_ << '\n' << sentence(verdict) << "\n  repeat: " << verdict.repro << '\n';
  }
  if (failures > kMostShown) out_ << "\n... and " << failures - kMostShown << " more in report.json\n";
  for (const std::string& note : report.notes) out_ << "\nnote: " << note << '\n';
  if (!report.throughput.empty())
    out_ << '\n' << throughput_text(report.throughput, std::thread::hardware_concurrency());
  out_.flush();
}

}  // namespace plumbline::conformance
