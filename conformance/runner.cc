#include "conformance/runner.h"

#include <chrono>
#include <cstdio>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "conformance/backend/run_job.h"
#include "conformance/launch.h"
#include "conformance/session.h"
#include "runtime/error.h"
#include "runtime/graph/error_text.h"
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

/// What is left of a group.
struct Rest {
  Job job;
  std::vector<size_t> runs;          ///< where each of its cases stands in the plan
  std::vector<size_t> measurements;  ///< and each measurement in the group's job
};

Rest what_is_left(const RunGroup& group, const Session& session, const std::set<size_t>& measured) {
  Rest rest{group.job, {}, {}};
  rest.job.cases.clear();
  rest.job.throughput.clear();
  for (size_t i = 0; i < group.runs.size(); ++i)
    if (!session.judged(group.runs[i]))
      rest.job.cases.push_back(group.job.cases[i]), rest.runs.push_back(group.runs[i]);
  for (size_t i = 0; i < group.job.throughput.size(); ++i)
    if (!measured.contains(i)) rest.job.throughput.push_back(group.job.throughput[i]), rest.measurements.push_back(i);
  return rest;
}

/// Launches the ranks of a group, again and again until nothing of it is left; false when they do not start.
bool run_group(const RunOptions& options, const RunGroup& group, Session& session) {
  const Launcher launcher(options.program, group.transport == TransportKind::Mpi, group.job.ranks);
  // Ranks say nothing while they start and while they are in a case; they name a wait that is too long themselves, so
  // this is only for ranks that hang elsewhere.
  const std::chrono::duration<double> silence(60 + options.timeout_seconds * 2);
  const std::filesystem::path out = session.results(group.job.ranks, group.transport);
  std::set<size_t> measured;
  while (true) {
    const Rest rest = what_is_left(group, session, measured);
    if (rest.runs.empty() && rest.measurements.empty()) return true;
    std::optional<size_t> running, measuring;
    bool any_event = false;
    const LaunchResult result = launcher.run(rest.job, out, silence, [&](const LaunchEvent& event) {
      any_event = true;
      const size_t index = event.throughput ? rest.measurements.at(event.index) : rest.runs.at(event.index);
      std::optional<size_t>& current = event.throughput ? measuring : running;
      current = event.done ? std::nullopt : std::optional<size_t>(index);
      if (!event.throughput && !event.done) session.begins(index);
      if (!event.throughput && event.done) session.done(index);
      if (event.throughput && event.done) {
        session.measured(event.index, rest.job.throughput[event.index], group);
        measured.insert(index);
      }
    });
    if (result.succeeded) return true;
    // The ranks are started anew without the case that broke them.
    const std::string reason = reason_of(result);
    if (running) {
      session.failed(*running, result.timed_out ? Status::Timeout : Status::Error, reason);
    } else if (measuring) {
      session.broken("the measurement of " + group.job.throughput[*measuring].schedule + " failed: " + reason);
      measured.insert(*measuring);
    } else {
      const std::string ranks =
          "the " + std::to_string(group.job.ranks) + " ranks (" + transport_name(group.transport) + ") ";
      session.broken(ranks + (any_event ? "failed between two cases: " : "did not start: ") + reason +
                     (any_event ? "" : "\n" + result.output));
      if (!any_event) return false;
    }
  }
}

}  // namespace

int run_supervised(const RunOptions& options, std::ostream& out) {
  const RunPlan plan = make_plan(options);
  Session session(options, plan, out, open_report_folder(options, plan));
  for (const RunGroup& group : plan.groups) run_group(options, group, session);
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
    RunPlan plan;
    std::optional<Session> session;
    int code = 0;
    if (mpi.rank() == 0) {
      try {
        if (given.ranks_given && given.ranks != mpi.size())
          throw InputError("--ranks: " + std::to_string(given.ranks) + " given, but mpirun started " +
                           std::to_string(mpi.size()));
        if (given.transport_given && given.transport != TransportKind::Mpi)
          throw InputError(
              "--transport: threads given, but mpirun started processes; leave it out, or leave mpirun out");
        if (options.resume)
          throw InputError("--resume: not under mpirun; `plumbline run --transport mpi` starts it itself");
        plan = make_plan(options, /*one_group=*/true);
        open_report_folder(options, plan);
        session.emplace(options, plan, out);
      } catch (const InputError& error) {
        std::fprintf(stderr, "plumbline: %s\n", error.what());
        code = 2;
      }
    }
    code = agree(code);
    if (code != 0) return code;
    if (mpi.rank() != 0) plan = make_plan(options, /*one_group=*/true);

    for (const RunGroup& group : plan.groups) {
      const std::filesystem::path results = options.report / results_folder(mpi.size(), group.transport);
      run_job_on_rank(group.job, *transport, results, [&](const std::string& line) {
        const LaunchEvent event = parse_event(line);
        if (!event.throughput && !event.done) session->begins(group.runs.at(event.index));
        if (!event.throughput && event.done) session->done(group.runs.at(event.index));
        if (event.throughput && event.done) session->measured(event.index, group.job.throughput[event.index], group);
      });
    }
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
