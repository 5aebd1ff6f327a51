#include "conformance/runner.h"

#include <fnmatch.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <ostream>
#include <set>

#include "conformance/backend/run_job.h"
#include "conformance/corpus.h"
#include "conformance/launch.h"
#include "conformance/mutants.h"
#include "conformance/session.h"
#include "reference/models/zoo.h"
#include "runtime/error.h"
#include "runtime/graph/error_text.h"
#include "runtime/join.h"
#include "runtime/schedule/generators.h"
#include "runtime/transport/collectives.h"
#if PLUMBLINE_HAS_MPI
#include "runtime/transport/mpi.h"
#endif

namespace plumbline {
namespace {

/// A rank's last words, without what the launcher says about them.
std::string reason_of(const LaunchResult& result) {
  const size_t at = result.output.find("plumbline: ");
  if (at == std::string::npos) return result.ending;
  return result.output.substr(at, result.output.find('\n', at) - at);
}

/// What is left of a job, and which number each part has in the whole one.
struct Rest {
  Job job;
  std::vector<size_t> cases, measurements;
};

Rest what_is_left(const Job& job, const Session& session, const std::set<size_t>& measured) {
  Rest rest{job, {}, {}};
  rest.job.cases.clear();
  rest.job.throughput.clear();
  for (size_t i = 0; i < job.cases.size(); ++i)
    if (!session.judged(i)) rest.job.cases.push_back(job.cases[i]), rest.cases.push_back(i);
  for (size_t i = 0; i < job.throughput.size(); ++i)
    if (!measured.contains(i)) rest.job.throughput.push_back(job.throughput[i]), rest.measurements.push_back(i);
  return rest;
}

}  // namespace

std::string transport_name(TransportKind kind) { return kind == TransportKind::Mpi ? "mpi" : "threads"; }

std::vector<std::string> matching_schedules(const std::string& glob) {
  std::vector<std::string> names;
  for (const std::string& name : schedule_names())
    if (fnmatch(glob.c_str(), name.c_str(), 0) == 0) names.push_back(name);
  if (names.empty())
    throw InputError("--schedule: no schedule matches '" + glob + "'; there are: " + join(schedule_names()));
  return names;
}

Job make_job(const RunOptions& options) {
  Job job;
  job.ranks = options.ranks;
  job.seed = options.seed;
  job.timeout_seconds = options.timeout_seconds;
  job.microbatches = options.microbatches;
  job.mutant = options.mutant;
  job.recompute = options.recompute;
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
  const Launcher launcher(options.program, options.transport == TransportKind::Mpi, job.ranks);
  // Ranks say nothing while they start and while they are in a case; they name a wait that is too long themselves, so
  // this is only for ranks that hang elsewhere.
  const std::chrono::duration<double> silence(60 + options.timeout_seconds * 2);
  std::set<size_t> measured;
  while (true) {
    const Rest rest = what_is_left(job, session, measured);
    if (rest.cases.empty() && rest.measurements.empty()) break;
    std::optional<size_t> running, measuring;
    bool any_event = false;
    const LaunchResult result = launcher.run(rest.job, session.results(), silence, [&](const LaunchEvent& event) {
      any_event = true;
      const size_t index = event.throughput ? rest.measurements.at(event.index) : rest.cases.at(event.index);
      std::optional<size_t>& current = event.throughput ? measuring : running;
      current = event.done ? std::nullopt : std::optional<size_t>(index);
      if (!event.throughput && !event.done) session.begins(index);
      if (!event.throughput && event.done) session.done(index);
      if (event.throughput && event.done) {
        session.measured(event.index, rest.job.throughput[event.index]);
        measured.insert(index);
      }
    });
    if (result.succeeded) break;
    // The ranks are started anew without the case that broke them.
    const std::string reason = reason_of(result);
    if (running) {
      session.failed(*running, result.timed_out ? Status::Timeout : Status::Error, reason);
    } else if (measuring) {
      session.broken("the measurement of " + job.throughput[*measuring].schedule + " failed: " + reason);
      measured.insert(*measuring);
    } else {
      session.broken((any_event ? "the ranks failed between two cases: " : "the ranks did not start: ") + reason +
                     (any_event ? "" : "\n" + result.output));
      if (!any_event) break;
    }
  }
  return session.report();
}

int run_inside_mpi(const RunOptions& given, std::ostream& out) {
#if PLUMBLINE_HAS_MPI
  MpiSession mpi;
  try {
    RunOptions options = given;
    options.ranks = mpi.size();
    options.transport = TransportKind::Mpi;
    const std::unique_ptr<Transport> transport = make_mpi_transport(mpi);
    const auto agree = [&](int code) { return agree_on(*transport, code, Deadline::never()); };
    // Rank 0 checks the input and tells what is wrong; all leave MPI in good order.
    Job job;
    int code = 0;
    if (mpi.rank() == 0) {
      try {
        if (given.ranks_given && given.ranks != mpi.size())
          throw InputError("--ranks: " + std::to_string(given.ranks) + " given, but mpirun started " +
                           std::to_string(mpi.size()));
        if (given.transport_given && given.transport != TransportKind::Mpi)
          throw InputError(
              "--transport: threads given, but mpirun started processes; leave it out, or leave mpirun out");
        job = make_job(options);
        prepare_report_folder(options.report);
      } catch (const InputError& error) {
        std::fprintf(stderr, "plumbline: %s\n", error.what());
        code = 2;
      }
    }
    code = agree(code);
    if (code != 0) return code;
    if (mpi.rank() != 0) job = make_job(options);

    std::optional<Session> session;
    if (mpi.rank() == 0) session.emplace(options, job, out);
    run_job_on_rank(job, *transport, options.report / "results", [&](const std::string& line) {
      const LaunchEvent event = parse_event(line);
      if (!event.throughput && !event.done) session->begins(event.index);
      if (!event.throughput && event.done) session->done(event.index);
      if (event.throughput && event.done) session->measured(event.index, job.throughput[event.index]);
    });
    return agree(session ? session->report() : 0);
  } catch (const std::exception& error) {
    mpi.abort(error_text(error));
  }
#else
  (void)given, (void)out;
  throw InputError("this plumbline was built without MPI");
#endif
}

}  // namespace plumbline
