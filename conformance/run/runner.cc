#include "conformance/run/runner.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "conformance/backend/built_models.h"
#include "conformance/backend/load_nccl.h"
#include "conformance/backend/rank_process.h"
#include "conformance/backend/runtime.h"
#include "conformance/backend/shared_job.h"
#include "conformance/corpus/corpus.h"
#include "conformance/plan/own_models.h"
#include "conformance/protocol/report_folder.h"
#include "conformance/run/baseline_runs.h"
#include "conformance/run/export_job.h"
#include "conformance/run/folder/open_report.h"
#include "conformance/run/hosts/launcher.h"
#include "conformance/run/own_runtime.h"
#include "conformance/run/session.h"
#include "conformance/run/supervise.h"
#include "runtime/device/cuda.h"
#include "runtime/error.h"
#include "runtime/graph/error_text.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/text/counted.h"
#include "runtime/text/join.h"
#include "runtime/transport/adverse_wire.h"
#include "runtime/transport/collectives.h"
#include "runtime/transport/nccl/library.h"
#if PLUMBLINE_HAS_MPI
#include "runtime/transport/mpi/mpi.h"
#endif

namespace plumbline::conformance {
namespace {

/// Maps the cases of a group's job to the runs of the session.
class GroupObserver : public JobObserver {
 public:
  GroupObserver(Session& session, const RunGroup& group) : session_(session), group_(group) {}
  void begins(size_t index) override { session_.begins(group_.runs.at(index)); }
  void done(size_t index) override { session_.done(group_.runs.at(index)); }
  void failed(size_t index, Status status, const std::string& reason) override {
    session_.failed(group_.runs.at(index), status, reason);
  }
  void broken(const std::string& reason) override { session_.broken(reason); }
  void not_started(const std::string& reason) override { session_.not_started(reason); }

 private:
  Session& session_;
  const RunGroup& group_;
};

/// Removes from the group the cases that do not stay.
void keep_cases(RunGroup& group, const std::function<bool(size_t run, JobCase&)>& stays) {
  const RunGroup all = std::exchange(group, {group.transport, group.job, {}});
  group.job.cases.clear();
  for (size_t i = 0; i < all.runs.size(); ++i) {
    JobCase item = all.job.cases[i];
    if (!stays(all.runs[i], item)) continue;
    group.job.cases.push_back(std::move(item));
    group.runs.push_back(all.runs[i]);
  }
}

/// What --throughput measures on so many ranks: each schedule on stages that sleep and on a model. `session` is told
/// what is left out.
Job throughput_job(const RunOptions& options, const RunPlan& plan, int ranks, ModelFacts& models, Session& session) {
  constexpr int kMicrobatches = 8;
  const JobThroughput workloads[] = {
      {.forward_ms = 5, .backward_ms = 10, .microbatches = kMicrobatches, .steps = 5, .trace = true},
      {.model = "transformer-lm", .rows = 2 * kMicrobatches, .microbatches = kMicrobatches, .steps = 8, .trace = true}};
  Job job = empty_job(options, ranks);
  std::vector<std::string> left_out;
  job.throughput =
      measurements(workloads, options.selection.schedules ? plan.schedules : choose_schedules(kMeasuredSchedules),
                   ranks, models, left_out);
  for (const std::string& why : left_out) session.note("not measured: " + why);
  return job;
}

/// What a run needs before it begins.
struct Prepared {
  RunOptions options;  ///< with what the backend's file adds
  std::unique_ptr<ModelFacts> models;
  BackendDescription backend;
  RunPlan plan;
};

/// Marks the runs under schedules that the backend does not have.
void restrict_to_schedules(RunPlan& plan, const BackendDescription& backend) {
  if (!backend.schedules) return;
  for (RunGroup& group : plan.groups)
    keep_cases(group, [&](size_t run, const JobCase& item) {
      const bool has = std::ranges::find(*backend.schedules, item.schedule) != backend.schedules->end();
      if (!has) plan.runs[run].unsupported = backend.name + " does not have this schedule";
      return has;
    });
}

/// False when there is no NCCL to take, or no device for it, which is told on stderr. Throws InputError for one that
/// does not fit.
bool find_nccl(RunOptions& options) {
  if (options.selection.transport != TransportKind::Nccl) return true;
  const auto choice = transport::nccl::parse_library_choice(options.nccl);
  transport::nccl::Library library;
  try {
    library = load_nccl(choice, options.device);
  } catch (const Error& error) {
    std::fprintf(stderr, "plumbline: %s\n", error.what());
    return false;
  }
  if (!library.stub.empty() && options.device != RunOptions().device)
    throw InputError("--device cuda: the stub of NCCL passes no memory of a device; name NCCL, or leave out --device");
  options.nccl_library = library.name() + (library.stub.empty() ? ", " + library.path : "");
  return true;
}

/// False when there is no such device, or there are several kinds of them, which is told on stderr.
bool find_device(const RunOptions& options) {
  try {
    if (!device::device_named(options.device).is_cpu()) device::require_one_kind(device::device_names());
    return true;
  } catch (const Error& error) {
    std::fprintf(stderr, "plumbline: %s\n", error.what());
    return false;
  }
}

std::unique_ptr<Backend> backend_of(const BackendSpec& spec, TransportKind transport = TransportKind::Own) {
  if (spec.foreign) return std::make_unique<CommandBackend>(spec, transport);
  return std::make_unique<OwnRuntime>(spec, transport);
}

/// Null when the backend does not describe itself or there is no NCCL to take, which is told on stderr.
std::unique_ptr<Prepared> prepared(const RunOptions& given) {
  add_cases(given.corpus);
  auto run = std::make_unique<Prepared>(Prepared{given, built_models(given.seed), {}, {}});
  RunOptions& options = run->options;
  if (options.backend.foreign) {
    options.selection.transport = TransportKind::Own;
    if (options.waivers.empty()) options.waivers = options.backend.waivers;
  }
  if (!find_nccl(options) || !find_device(options)) return nullptr;
  try {
    run->backend = backend_of(options.backend)->describe();
  } catch (const BackendError& error) {
    make_plan(options, *run->models);  // an error in the user's input is reported before this one
    std::fprintf(stderr, "plumbline: %s\n", error.what());
    return nullptr;
  }
  for (const std::string& word : transport::wire_words())
    if ((',' + options.wire + ',').find(',' + word + ',') != std::string::npos &&
        std::ranges::find(run->backend.wire, word) == run->backend.wire.end())
      throw InputError("--wire: " + word + " given, but " + run->backend.name + " offers " +
                       (run->backend.wire.empty() ? "none (describe, member `wire`)" : join(run->backend.wire)));
  if (run->backend.level == CaseLevel::Own) {
    run->plan = plan_own_models(options, run->backend);
    options.selection.profile = "its own models";
  } else {
    run->plan = make_plan(options, *run->models);
    restrict_to_schedules(run->plan, run->backend);
  }
  return run;
}

}  // namespace

int run_supervised(const RunOptions& given, std::ostream& out) {
  const std::unique_ptr<Prepared> run = prepared(given);
  if (!run) return 3;
  const auto& [options, models, backend, plan] = *run;
  const BackendSpec& spec = options.backend;
  const bool own_models = backend.level == CaseLevel::Own;
  const auto has_processes = [](const RunGroup& group) { return group.transport != TransportKind::Threads; };
  // Open MPI would make a missing TMPDIR, and leave it.
  if (std::ranges::any_of(plan.groups, has_processes)) temporary_room();
  const ReportFolder folder(options.report);
  Session session(options, plan, out, backend, open_report_folder(options, plan, backend));
  std::optional<BaselineRuns> baselines;
  if (own_models) baselines.emplace(plan, options, CommandBackend(spec), session);
  for (RunGroup group : plan.groups) {
    const std::filesystem::path results = folder.job_output(group.job.ranks, group.transport);
    keep_cases(group, [&](size_t run, JobCase& item) {
      if (session.judged(run)) return false;  // before an interruption
      BaselineRuns::Outcome outcome = {Status::Pass, ""};
      if (std::string left = remove_results(results, item); !left.empty()) {  // of a case that now has no results too
        outcome = {Status::Error, std::move(left)};
      } else if (own_models) {
        outcome = baselines->of(item.id);
      } else if (spec.foreign) {
        outcome.second = export_for_job(item, group.job, options.microbatches, backend, results);
        if (!outcome.second.empty()) outcome.first = Status::Unsupported;
      }
      const auto& [status, why] = outcome;
      if (status != Status::Pass && status != Status::NotRun) session.failed(run, status, why);
      return status == Status::Pass;
    });
    GroupObserver observer(session, group);
    if (!group.job.cases.empty())
      supervise(*backend_of(spec, group.transport), group.job, results, observer,
                own_models ? Delivery::Recording : Delivery::Results);
    session.hold_to_seals();
  }
  if (options.throughput) {
    const TransportKind transport = options.selection.transport_or_default();
    const int ranks = options.selection.ranks.empty() ? kDefaultRanks : options.selection.ranks.back();
    const Job job = throughput_job(options, plan, ranks, *models, session);
    if (!job.throughput.empty())
      session.measured(measure_throughput(*backend_of(spec, transport), job, folder.job_output(ranks, transport)));
  }
  return session.report();
}

int list_runs(const RunOptions& given, std::ostream& out) {
  const std::unique_ptr<Prepared> run = prepared(given);
  if (!run) return 3;
  size_t possible = 0;
  for (const PlannedRun& one : run->plan.runs) {
    if (!one.unsupported.empty()) continue;
    out << to_string(one.id) << '\n';
    ++possible;
  }
  const size_t unsupported = run->plan.runs.size() - possible;
  out << counted(possible, "run");
  if (unsupported > 0) out << ", and " << unsupported << " unsupported";
  out << '\n';
  return 0;
}

int run_inside_mpi(RunOptions options, std::ostream& out) {
#if PLUMBLINE_HAS_MPI
  if (options.backend.foreign)
    throw InputError("--backend: " + options.backend.given + " is started by plumbline itself; leave mpirun out");
  if (!options.launcher.empty())
    throw InputError("--launcher: the ranks are already started, by mpirun; leave out one of them");
  transport::MpiSession mpi;
  options.started_by = launcher_of_this_rank(options.program, mpi.size());
  try {
    const std::unique_ptr<transport::Transport> transport = transport::make_mpi_transport(mpi);
    const auto patient = [&] { return transport::Deadline::patient(transport::from_seconds(options.timeout_seconds)); };
    const auto agree = [&](int code) { return transport::agree_on(*transport, code, patient()); };
    // Rank 0 checks the input and reports an error; all ranks then finalize MPI. The others learn what to run from it,
    // since their hosts may lack the user's files.
    std::vector<CaseText> cases;
    std::unique_ptr<ModelFacts> models;
    RunPlan plan;
    std::optional<Session> session;
    int code = 0;
    if (mpi.rank() == 0) {
      try {
        const Selection& selection = options.selection;
        if (!selection.ranks.empty() && selection.ranks != std::vector{mpi.size()})
          throw InputError("--ranks: " + numbers_text(selection.ranks) + " given, but mpirun started " +
                           std::to_string(mpi.size()));
        if (selection.transport == TransportKind::Threads)
          throw InputError(
              "--transport: threads given, but mpirun started processes; leave it out, or leave mpirun out");
        if (options.resume)
          throw InputError("--resume: not under mpirun; `plumbline run --transport mpi` starts it itself");
        cases = read_case_texts(options.corpus);
        add_cases(cases);
        models = built_models(options.seed);
        plan = make_plan(options, *models, mpi.size());
        if (find_nccl(options) && find_device(options)) {
          session.emplace(options, plan, out, BackendDescription(), open_report_folder(options, plan));
        } else {
          code = 3;
        }
      } catch (const InputError& error) {
        std::fprintf(stderr, "plumbline: %s\n", error.what());
        code = 2;
      }
    }
    code = agree(code);
    if (code != 0) return code;
    share_cases(*transport, cases, patient());

    // All ranks have the same command line.
    const TransportKind kind = options.selection.transport.value_or(TransportKind::Mpi);
    const RankProcess rank(*transport, kind, options.nccl, options.device,
                           transport::from_seconds(options.timeout_seconds));
    const Runtime runtime(rank.transport(), rank.device());
    const std::filesystem::path results = ReportFolder(options.report).job_output(mpi.size(), kind);
    const auto shared = [&](const Job& job) { return share_job(*transport, job, patient()); };
    const auto groups = static_cast<size_t>(agree(static_cast<int>(plan.groups.size())));
    for (size_t g = 0; g < groups; ++g) {
      runtime.run(shared(session ? plan.groups[g].job : Job()), results, [&](const JobEvent& event) {
        const size_t index = plan.groups[g].runs.at(event.index);
        event.done ? session->done(index) : session->begins(index);
      });
    }
    if (options.throughput) {
      const Job job = shared(session ? throughput_job(options, plan, mpi.size(), *models, *session) : Job());
      if (!job.throughput.empty()) {
        const ThroughputRun run = measure_throughput(runtime, job, results);
        if (session) session->measured(run);
      }
    }
    return agree(session ? session->report() : 0);
  } catch (const std::exception& error) {
    mpi.abort(graph::error_text(error));
  }
#else
  (void)options, (void)out;
  throw InputError("this plumbline was built without MPI");
#endif
}

}  // namespace plumbline::conformance
