// plumbline backend: the verbs of a backend, executed by the runtime. `plumbline run` starts it as it starts foreign
// backends.
#include <cstdio>
#include <memory>
#include <vector>

#include "conformance/backend/rank_process.h"
#include "conformance/backend/runtime.h"
#include "conformance/backend/shared_job.h"
#include "conformance/cli/actions/execute.h"
#include "conformance/corpus/corpus.h"
#include "conformance/protocol/command/command_backend.h"
#include "runtime/error.h"
#include "runtime/graph/error_text.h"
#if PLUMBLINE_HAS_MPI
#include "runtime/transport/mpi/mpi.h"
#endif

namespace plumbline::cli {
namespace {

int describe() {
  std::printf("%s\n", conformance::description_text(conformance::Runtime().describe()).c_str());
  return 0;
}

/// The job, whose cases are then in the corpus.
conformance::Job read_job(const BackendCommand& options) {
  conformance::Job job = conformance::read_job(options.job);
  conformance::add_cases(job.corpus);
  return job;
}

int plan(const BackendCommand& options) {
  const conformance::Job job = read_job(options);
  std::printf("%s\n", plan_text(job, conformance::Runtime().plan(job, {})).c_str());
  return 0;
}

void print_event(const conformance::JobEvent& event) {
  std::printf("%s%s\n", std::string(conformance::kEventPrefix).c_str(), to_string(event).c_str());
  std::fflush(stdout);
}

#if PLUMBLINE_HAS_MPI
/// Rank 0 reads the job and the user's cases, so that its host alone needs the files.
void run_as_rank(const BackendCommand& options, transport::MpiSession& mpi) {
  const std::unique_ptr<transport::Transport> transport = transport::make_mpi_transport(mpi);
  const auto patient = [] { return transport::Deadline::patient({}); };
  conformance::Job read;
  std::vector<conformance::CaseText> cases;
  if (mpi.rank() == 0) {
    read = conformance::read_job(options.job);
    cases = conformance::read_case_texts(read.corpus);
    conformance::add_cases(cases);
  }
  const conformance::Job job = conformance::share_job(*transport, read, patient());
  conformance::share_cases(*transport, cases, patient());
  if (mpi.size() != job.ranks)
    mpi.abort("the job is for " + std::to_string(job.ranks) + " ranks, mpirun started " + std::to_string(mpi.size()));
  const conformance::RankProcess rank(*transport, *conformance::transport_kind(options.transport), options.nccl,
                                      job.device, transport::from_seconds(job.timeout_seconds));
  conformance::Runtime(rank.transport(), rank.device()).run(job, options.out, print_event);
}
#endif

int run(const BackendCommand& options) {
  if (options.transport == "threads") {
    conformance::Runtime().run(read_job(options), options.out, print_event);
    return 0;
  }
#if PLUMBLINE_HAS_MPI
  transport::MpiSession mpi;
  try {
    run_as_rank(options, mpi);
  } catch (const std::exception& error) {
    mpi.abort(graph::error_text(error));
  }
  return 0;
#else
  throw InputError("--transport " + options.transport + ": this plumbline was built without MPI");
#endif
}

}  // namespace

int execute_backend(const BackendCommand& options) {
  if (options.verb == "describe") return describe();
  return options.verb == "plan" ? plan(options) : run(options);
}

}  // namespace plumbline::cli
