#include "conformance/run/session.h"

#include <unistd.h>

#include <algorithm>
#include <ostream>
#include <thread>
#include <utility>

#include "conformance/corpus/corpus.h"
#include "conformance/report/context.h"
#include "conformance/report/json.h"
#include "conformance/report/junit.h"
#include "conformance/report/page/page.h"
#include "conformance/report/svg/matrix_svg.h"
#include "conformance/report/text.h"
#include "conformance/run/folder/open_report.h"
#include "conformance/run/folder/run_artifacts.h"
#include "conformance/run/repeat.h"
#include "runtime/clock.h"
#include "runtime/device/cuda.h"
#include "runtime/error.h"
#include "runtime/fnv1a.h"
#include "runtime/io/write_file.h"
#include "runtime/text/join.h"
#include "runtime/text/one_line.h"

namespace plumbline::conformance {
namespace {

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

/// Of the runs that are possible, those without a verdict.
int runs_to_come(const RunPlan& plan, const std::vector<Verdict>& earlier) {
  std::set<RunId> judged;
  for (const Verdict& verdict : earlier) judged.insert(verdict.run);
  return static_cast<int>(std::ranges::count_if(
      plan.runs, [&](const PlannedRun& run) { return run.unsupported.empty() && !judged.contains(run.id); }));
}

}  // namespace

Session::Session(const RunOptions& options, const RunPlan& plan, std::ostream& out, BackendDescription backend,
                 OpenReport report)
    : options_(options),
      plan_(plan),
      folder_(options.report),
      lock_(std::move(report.lock)),
      out_(out),
      judge_(options.seed, device::device_named(options.device), backend.device != BackendDescription().device),
      waivers_(options.waivers.empty() ? std::vector<Waiver>() : read_waivers(options.waivers, case_ids(backend)),
               today()),
      backend_(or_runtime(std::move(backend))),
      verdicts_(plan.runs.size()),
      begin_(std::chrono::steady_clock::now()),
      case_begin_(begin_),
      progress_(out, {runs_to_come(plan, report.earlier), is_live_terminal(STDOUT_FILENO), wants_colour(STDOUT_FILENO),
                      terminal_columns(STDOUT_FILENO), options.verbose, options.report}) {
  std::map<RunId, size_t> indices;
  for (size_t i = 0; i < plan.runs.size(); ++i) indices.emplace(plan.runs[i].id, i);
  for (Verdict& verdict : report.earlier) {
    const auto run = indices.find(verdict.run);
    PLUMBLINE_CHECK(run != indices.end(), to_string(verdict.run));
    const size_t index = run->second;
    waivers_.applied(verdict, backend_.version);  // its waiver was applied before; this call counts the waiver as used
    verdicts_[index] = std::move(verdict);
    judged_.insert(index);
    const Finding& finding = verdicts_[index].finding;
    const bool has_files = options.keep == Keep::All || finding.status != Status::Pass;
    if (finding.tensors > 0 && has_files) seal(index);
  }
  if (!judged_.empty())
    progress_.note("resumed: " + std::to_string(judged_.size()) + " of " + std::to_string(plan.runs.size()) +
                   " were judged before");
  for (const size_t i : judged_)
    if (is_failure(verdicts_[i].finding.status)) progress_.tell_failure(verdicts_[i]);
  earlier_ = judged_;
  for (size_t i = 0; i < plan.runs.size(); ++i) {
    if (judged(i) || plan.runs[i].unsupported.empty()) continue;
    Verdict verdict = empty_verdict(i);
    verdict.finding.status = Status::Unsupported;
    verdict.finding.reason = one_line(plan.runs[i].unsupported);
    if (options.verbose) progress_.note(sentence(verdict));
    keep(i, std::move(verdict));
  }
}

void Session::begins(size_t index) {
  case_begin_ = std::chrono::steady_clock::now();
  progress_.working_on(to_string(plan_.runs[index].id));
}

void Session::seal(size_t index) {
  if (!options_.backend.foreign) return;
  seals_.insert_or_assign(index, ResultSeal(folder_.results(), [this, index] {
                            return artifacts_of(plan_.runs[index], folder_, backend_).files;
                          }));
}

void Session::done(size_t index) {
  const PlannedRun& run = plan_.runs[index];
  seal(index);
  Verdict verdict = empty_verdict(index);
  if (const std::string changed = why_baseline_changed(run.id.case_id); changed.empty()) {
    verdict.finding = judge_artifacts(run, options_.microbatches, folder_, backend_, judge_);
  } else {
    verdict.finding.status = Status::Error;
    verdict.finding.reason = changed;
  }
  if (verdict.finding.status != Status::Pass) verdict.log = log_of(plan_.runs[index], folder_);
  finish(index, std::move(verdict));
  if (options_.keep == Keep::Failures && verdicts_[index].finding.status == Status::Pass) {
    if (const std::string left = remove_artifacts(run, folder_); !left.empty())
      progress_.note("note: " + one_line(left));
    seals_.erase(index);
  }
}

void Session::hold_to_seals() {
  // A later backend may have changed what an earlier one left.
  std::map<std::string, std::string> changed_baselines;
  for (const auto& [model, seal] : baseline_seals_) changed_baselines.emplace(model, why_baseline_changed(model));
  std::map<size_t, std::string> broken;
  for (const auto& [index, seal] : seals_) {
    std::string why = seal.why_broken();
    if (why.empty()) why = changed_baselines[plan_.runs[index].id.case_id];
    if (!why.empty()) broken.emplace(index, why);
  }
  for (const auto& [index, why] : broken) {
    seals_.erase(index);
    Verdict verdict = empty_verdict(index);
    verdict.finding.status = Status::Error;
    verdict.finding.reason = one_line(why);
    verdict.log = log_of(plan_.runs[index], folder_);
    verdict.seconds = verdicts_[index].seconds;
    verdict = waivers_.applied(std::move(verdict), backend_.version);
    if (earlier_.contains(index))
      progress_.tell_failure(verdict);
    else
      progress_.replaced(verdicts_[index], verdict);
    keep(index, std::move(verdict));
  }
}

void Session::baseline_done(const std::string& model) {
  const auto run = std::ranges::find(plan_.runs, model, [](const PlannedRun& planned) { return planned.id.case_id; });
  PLUMBLINE_CHECK(run != plan_.runs.end(), model);
  baseline_seals_.insert_or_assign(
      model, ResultSeal(folder_.results(), [this, run] { return artifacts_of(*run, folder_, backend_).baseline; }));
}

std::string Session::why_baseline_changed(const std::string& model) const {
  const auto seal = baseline_seals_.find(model);
  const std::string why = seal == baseline_seals_.end() ? "" : seal->second.why_broken();
  return why.empty() ? "" : one_line("its run on one rank: " + why);
}

void Session::failed(size_t index, Status status, const std::string& reason) {
  Verdict verdict = empty_verdict(index);
  verdict.finding.status = status;
  verdict.finding.reason = one_line(reason);
  if (status != Status::Unsupported) verdict.log = log_around(plan_.runs[index], folder_);
  finish(index, std::move(verdict));
}

void Session::measured(const ThroughputRun& run) {
  throughput_ = run.measured;
  if (!run.failed.empty()) broken(run.failed);
}

void Session::broken(const std::string& reason) {
  broken_.push_back(one_line(reason));
  progress_.note("BROKEN " + broken_.back());
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
  verdict.device = options_.backend.foreign ? backend_.device : options_.device;
  if (backend_.level == CaseLevel::Own) {
    verdict.finding.truth = reference::Truth::SameOrder;
  } else {
    const reference::Case& c = find_case(run.case_id);
    verdict.title = c.title;
    verdict.dtype = to_string(c.dtype);
    verdict.finding.truth = c.truth;
  }
  verdict.finding.reason = not_started_.empty() ? "the run ended before it" : not_started_;
  verdict.repro = repeat_command(options_, run);
  return verdict;
}

void Session::finish(size_t index, Verdict verdict) {
  verdict.seconds = seconds_since(case_begin_);
  verdict = waivers_.applied(std::move(verdict), backend_.version);
  progress_.finished(verdict);
  keep(index, std::move(verdict));
}

void Session::keep(size_t index, Verdict verdict) {
  append_jsonl(folder_.verdict_log(), verdict);
  verdicts_[index] = std::move(verdict);
  judged_.insert(index);
}

int Session::report() {
  RunReport report;
  for (const std::string& expired : waivers_.expired()) broken(expired);
  report.notes = waivers_.unused();
  report.backend = {backend_.name, backend_.version, options_.backend.foreign ? backend_.device : options_.device,
                    description_text(backend_)};
  report.environment = run_environment();
  const Places places = places_of(plan_);
  report.context =
      run_context(options_.command_line, {{"backend", backend_.name + " " + backend_.version},
                                          {"transport", places.transports},
                                          {"device", options_.device == "cpu" ? "cpu" : device::describe_cuda()},
                                          {"nccl", options_.nccl_library.empty() ? "none" : options_.nccl_library},
                                          {"ranks", places.ranks},
                                          {"seed", std::to_string(options_.seed)},
                                          {"profile", options_.selection.profile_or_default()},
                                          {"mutant", options_.mutant.empty() ? "none" : options_.mutant},
                                          {"recompute", options_.recompute},
                                          {"remat", to_string(options_.remat)},
                                          {"wire", options_.wire.empty() ? "ordinary" : options_.wire}});
  for (size_t i = 0; i < verdicts_.size(); ++i) report.verdicts.push_back(judged(i) ? verdicts_[i] : empty_verdict(i));
  report.throughput = throughput_;
  report.broken = broken_;
  report.wall_seconds = seconds_since(begin_);
  print(report);
  write_report_json(folder_.report(), report);
  write_junit(folder_.junit(), report);
  write_file(folder_.matrix_picture(), matrix_svg(report));
  const std::filesystem::path folder = options_.report.lexically_normal();
  write_file(folder_.matrix_page(), report_page({{page_label(folder), report}}));
  out_ << "report: " << one_line(folder.string())
       << " (matrix.html, matrix.svg, report.json, junit.xml, results.jsonl, results/)\n"
       << summary_text(report.verdicts, wants_colour(STDOUT_FILENO));
  out_.flush();
  return exit_code(report);
}

void Session::print(const RunReport& report) {
  for (const std::string& note : report.notes) progress_.note("note: " + note);
  std::vector<Verdict> untold = report.verdicts;
  std::erase_if(untold, [&](const Verdict& verdict) {
    return verdict.finding.status == Status::NotRun && verdict.finding.reason == not_started_;  // printed before
  });
  const std::vector<std::string> parts = {throughput_text(report.throughput, std::thread::hardware_concurrency()),
                                          matrix_text(report.verdicts, {.colour = wants_colour(STDOUT_FILENO),
                                                                        .columns = terminal_columns(STDOUT_FILENO),
                                                                        .only_failures = !options_.verbose}),
                                          reasons_text(untold)};
  progress_.end();
  for (const std::string& part : parts)
    if (!part.empty()) out_ << '\n' << part;
  out_ << '\n';
  out_.flush();
}

}  // namespace plumbline::conformance
