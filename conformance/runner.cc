#include "conformance/runner.h"

#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ostream>
#include <set>

#include "conformance/backend/run_job.h"
#include "conformance/backend/throughput.h"
#include "conformance/context.h"
#include "conformance/corpus.h"
#include "conformance/judge.h"
#include "conformance/launch.h"
#include "conformance/mutants.h"
#include "conformance/progress.h"
#include "conformance/report/json.h"
#include "conformance/report/junit.h"
#include "conformance/report/matrix_svg.h"
#include "conformance/report/text.h"
#include "conformance/report/write_text.h"
#include "reference/models/zoo.h"
#include "runtime/error.h"
#include "runtime/schedule/generators.h"
#include "runtime/split/split.h"
#include "runtime/transport/collectives.h"
#if PLUMBLINE_HAS_MPI
#include "runtime/transport/mpi.h"
#endif

namespace plumbline {
namespace {

using Seconds = std::chrono::duration<double>;

std::string transport_name(TransportKind kind) { return kind == TransportKind::Mpi ? "mpi" : "threads"; }

/// Judges cases as they arrive and puts the report together.
class Session {
 public:
  Session(const RunOptions& options, const Job& job, std::ostream& out)
      : options_(options),
        job_(job),
        out_(out),
        judge_(job.ranks, job.seed),
        results_(options.report / "results"),
        verdicts_(job.cases.size()),
        begin_(std::chrono::steady_clock::now()),
        progress_(out, {static_cast<int>(job.cases.size()), is_live_terminal(STDOUT_FILENO),
                        wants_colour(STDOUT_FILENO), terminal_columns(STDOUT_FILENO)}) {}

  const std::filesystem::path& results() const { return results_; }

  void begins(size_t index) {
    case_begin_ = std::chrono::steady_clock::now();
    progress_.working_on(job_.cases[index].id + " x " + job_.cases[index].schedule);
  }

  /// All ranks have written their files.
  void done(size_t index) {
    const JobCase& item = job_.cases[index];
    std::string note;
    const Case c = with_microbatches(find_case(item.id), job_.microbatches, note);
    CaseVerdict verdict = empty_verdict(index);
    try {
      std::vector<std::filesystem::path> files;
      for (int r = 0; r < job_.ranks; ++r) files.push_back(result_path(results_, item, r));
      const std::string repro = verdict.repro;
      verdict = judge_.judge(c, item.schedule, merge_rank_files(files));
      verdict.repro = repro;
    } catch (const std::exception& error) {
      verdict.status = Status::Error;
      verdict.reason = one_line(error.what());
    }
    if (verdict.reason.empty()) verdict.reason = note;
    finish(index, std::move(verdict));
  }

  /// The ranks ended, or were ended, while this case ran.
  void failed(size_t index, Status status, const std::string& reason) {
    CaseVerdict verdict = empty_verdict(index);
    verdict.status = status;
    verdict.reason = one_line(reason);
    finish(index, std::move(verdict));
  }

  /// `index` is the measurement's number in the job that was launched: its files go by it.
  void measured_in(size_t index, const JobThroughput& item) {
    throughput_.push_back(read_throughput(item, index, job_.ranks, results_));
  }
  void note(const std::string& line) { progress_.note(line); }

  bool judged(size_t index) const { return judged_.contains(index); }

  /// Prints the matrix and where everything lies, writes the report folder; the exit code.
  int report() {
    RunReport report;
    report.context = run_context(options_.command_line, {{"backend", "runtime"},
                                                         {"transport", transport_name(options_.transport)},
                                                         {"ranks", std::to_string(job_.ranks)},
                                                         {"seed", std::to_string(job_.seed)},
                                                         {"profile", options_.profile},
                                                         {"mutant", job_.mutant.empty() ? "none" : job_.mutant}});
    for (size_t i = 0; i < verdicts_.size(); ++i)
      report.verdicts.push_back(judged(i) ? verdicts_[i] : empty_verdict(i));
    report.throughput = throughput_;
    report.wall_seconds = Seconds(std::chrono::steady_clock::now() - begin_).count();
    write_report_json(options_.report / "report.json", report);
    write_junit(options_.report / "junit.xml", report);
    write_text_file(options_.report / "matrix.svg", matrix_svg(report));

    out_ << '\n' << matrix_text(report.verdicts, {wants_colour(STDOUT_FILENO), terminal_columns(STDOUT_FILENO)});
    print_failures(report);
    if (!throughput_.empty()) out_ << '\n' << throughput_text(throughput_);
    out_ << "\nreport: " << options_.report.string()
         << "/ (matrix.svg, report.json, junit.xml, results.jsonl, results/)\n";
    out_.flush();
    return exit_code(report);
  }

 private:
  CaseVerdict empty_verdict(size_t index) const {
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
    return verdict;
  }

  void finish(size_t index, CaseVerdict verdict) {
    verdict.seconds = Seconds(std::chrono::steady_clock::now() - case_begin_).count();
    append_jsonl(options_.report / "results.jsonl", verdict);
    progress_.finished(verdict);
    verdicts_[index] = std::move(verdict);
    judged_.insert(index);
  }

  void print_failures(const RunReport& report) {
    constexpr int kMostShown = 10;
    int shown = 0, failures = 0;
    for (const CaseVerdict& verdict : report.verdicts) {
      if (!is_failure(verdict.status) && verdict.status != Status::NotRun) continue;
      if (++failures > kMostShown) continue;
      ++shown;
      out_ << '\n' << sentence(verdict) << "\n  repeat: " << verdict.repro << '\n';
    }
    if (failures > shown) out_ << "\n... and " << failures - shown << " more in report.json\n";
  }

  const RunOptions& options_;
  const Job& job_;
  std::ostream& out_;
  Judge judge_;
  std::filesystem::path results_;
  std::vector<CaseVerdict> verdicts_;
  std::set<size_t> judged_;
  std::vector<Throughput> throughput_;
  std::chrono::steady_clock::time_point begin_, case_begin_;
  Progress progress_;
};

/// An empty folder of results below the report folder; throws InputError when it cannot be made.
void prepare_report_folder(const std::filesystem::path& report) {
  std::error_code error;
  std::filesystem::create_directories(report, error);
  if (error || !std::filesystem::is_directory(report))
    throw InputError("--report: folder '" + report.string() + "' cannot be made" +
                     (error ? " (" + error.message() + ")" : ""));
  if (access(report.c_str(), R_OK | W_OK | X_OK) != 0)
    throw InputError("--report: folder '" + report.string() + "' cannot be read and written (" + std::strerror(errno) +
                     ")");
  std::filesystem::remove_all(report / "results");
  std::filesystem::remove(report / "results.jsonl");
  write_text_file(report / "results.jsonl", "");
}

/// A rank's last words, without what the launcher says about them.
std::string reason_of(const std::string& output, const std::string& ending) {
  const size_t at = output.find("plumbline: ");
  if (at == std::string::npos) return ending;
  return output.substr(at, output.find('\n', at) - at);
}

}  // namespace

std::vector<std::string> matching_schedules(const std::string& glob) {
  std::vector<std::string> names;
  std::string known;
  for (const std::string& name : schedule_names()) {
    if (fnmatch(glob.c_str(), name.c_str(), 0) == 0) names.push_back(name);
    known += (known.empty() ? "" : ", ") + name;
  }
  if (names.empty()) throw InputError("--schedule: no schedule matches '" + glob + "'; there are: " + known);
  return names;
}

Job make_job(const RunOptions& options) {
  Job job;
  job.ranks = options.ranks;
  job.seed = options.seed;
  job.timeout_seconds = options.timeout_seconds;
  job.microbatches = options.microbatches;
  job.mutant = options.mutant;
  if (options.ranks < 1) throw InputError("--ranks: " + std::to_string(options.ranks) + " given; 1 or more are needed");
  if (options.microbatches < 0)
    throw InputError("--microbatches: " + std::to_string(options.microbatches) + " given; 1 or more are needed");
  if (!options.mutant.empty() && find_mutant(options.mutant).least_ranks > options.ranks)
    throw InputError("--mutant: " + options.mutant + " needs " +
                     std::to_string(find_mutant(options.mutant).least_ranks) + " ranks or more");
  const std::vector<std::string> schedules = matching_schedules(options.schedule_glob);
  const std::vector<Case> all = profile(options.profile);
  const std::vector<Case> cases = options.case_glob.empty() ? all : select(corpus(), options.case_glob);
  std::set<std::string> models;
  for (const Case& c : cases) {
    if (models.insert(c.model).second) {
      const size_t points = make_model(c.model, c.dtype, options.seed).split_points.size();
      if (static_cast<size_t>(options.ranks) > points + 1)
        throw InputError("--ranks: case " + c.id + " has " + std::to_string(points) + " split points, enough for " +
                         std::to_string(points + 1) + " stages; " + std::to_string(options.ranks) + " were asked for");
    }
    if (options.microbatches > c.rows)
      throw InputError("--microbatches: case " + c.id + " has " + std::to_string(c.rows) + " rows, too few for " +
                       std::to_string(options.microbatches) + " micro-batches");
    for (const std::string& schedule : schedules) job.cases.push_back({c.id, schedule});
  }
  if (options.throughput) {
    for (const std::string& schedule : schedules) {
      job.throughput.push_back({schedule, "", 5, 10, 0, 8, 5});
      job.throughput.push_back({schedule, "transformer-lm", 0, 0, 16, 8, 8});
    }
  }
  return job;
}

int run_supervised(const RunOptions& options, std::ostream& out) {
  const Job job = make_job(options);
  prepare_report_folder(options.report);
  Session session(options, job, out);
  Launcher launcher(options.program, options.transport == TransportKind::Mpi, job.ranks);
  std::vector<char> measured(job.throughput.size(), 0);
  for (bool again = true; again;) {
    // What is left: after a crash the ranks are started anew without the case that broke them.
    Job rest = job;
    rest.cases.clear();
    rest.throughput.clear();
    std::vector<size_t> cases, measurements;
    for (size_t i = 0; i < job.cases.size(); ++i)
      if (!session.judged(i)) rest.cases.push_back(job.cases[i]), cases.push_back(i);
    for (size_t i = 0; i < job.throughput.size(); ++i)
      if (!measured[i]) rest.throughput.push_back(job.throughput[i]), measurements.push_back(i);
    if (rest.cases.empty() && rest.throughput.empty()) break;

    std::optional<size_t> running, measuring;
    const LaunchResult result =
        launcher.run(rest, session.results(), std::chrono::duration<double>(options.timeout_seconds * 2),
                     [&](const LaunchEvent& event) {
                       std::optional<size_t>& current = event.throughput ? measuring : running;
                       const size_t index = event.throughput ? measurements.at(event.index) : cases.at(event.index);
                       current = event.done ? std::nullopt : std::optional<size_t>(index);
                       if (!event.throughput && !event.done) session.begins(index);
                       if (!event.throughput && event.done) session.done(index);
                       if (!event.throughput || !event.done) return;
                       // The files of a measurement are numbered within the job that was launched.
                       session.measured_in(event.index, rest.throughput[event.index]);
                       measured[index] = 1;
                     });
    again = false;
    if (result.succeeded) break;
    const std::string reason = reason_of(result.output, result.ending);
    if (running) {
      session.failed(*running, result.timed_out ? Status::Timeout : Status::Error, reason);
      again = true;
    } else if (measuring) {
      session.note("measurement of " + job.throughput[*measuring].schedule + " failed: " + reason);
      measured[*measuring] = 1;
      again = true;
    } else {
      session.note("the ranks did not start: " + reason);
      if (!result.output.empty()) session.note(result.output);
    }
  }
  return session.report();
}

int run_inside_mpi(const RunOptions& given, std::ostream& out) {
#if PLUMBLINE_HAS_MPI
  MpiSession mpi;
  RunOptions options = given;
  options.ranks = mpi.size();
  options.transport = TransportKind::Mpi;
  const std::unique_ptr<Transport> transport = make_mpi_transport(mpi);
  // Every rank checks the input and leaves MPI in good order; rank 0 tells what is wrong.
  Job job;
  try {
    if (given.ranks != mpi.size() && given.ranks_given)
      throw InputError("--ranks: " + std::to_string(given.ranks) + " given, but mpirun started " +
                       std::to_string(mpi.size()));
    job = make_job(options);
    if (mpi.rank() == 0) prepare_report_folder(options.report);
  } catch (const InputError& error) {
    if (mpi.rank() == 0) std::fprintf(stderr, "plumbline: %s\n", error.what());
    return 2;
  }
  std::unique_ptr<Session> session;
  if (mpi.rank() == 0) session = std::make_unique<Session>(options, job, out);
  run_job_on_rank(job, *transport, options.report / "results", [&](const std::string& line) {
    const LaunchEvent event = parse_event(line);
    if (!event.throughput && !event.done) session->begins(event.index);
    if (!event.throughput && event.done) session->done(event.index);
    if (event.throughput && event.done) session->measured_in(event.index, job.throughput[event.index]);
  });
  int code = session ? session->report() : 0;
  const auto answer = broadcast_bytes(*transport, 0, std::as_bytes(std::span(&code, 1)), Deadline::never());
  std::memcpy(&code, answer.data(), sizeof code);
  return code;
#else
  (void)given, (void)out;
  throw InputError("this plumbline was built without MPI");
#endif
}

}  // namespace plumbline
