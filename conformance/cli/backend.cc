// plumbline backend: the verbs of a backend, executed by the runtime. `plumbline run` starts it as it starts foreign
// backends.
#include <cstdio>
#include <memory>

#include "conformance/backend/runtime.h"
#include "conformance/cli/commands.h"
#include "conformance/corpus/corpus.h"
#include "conformance/protocol/command_backend.h"
#include "runtime/error.h"
#if PLUMBLINE_HAS_MPI
#include "runtime/transport/mpi.h"
#include "runtime/transport/nccl/nccl_transport.h"
#endif

namespace plumbline::cli {
namespace {

struct BackendOptions {
  std::string job, out, transport = "threads", nccl;
};

int describe() {
  std::printf("%s\n", conformance::description_text(conformance::Runtime().describe()).c_str());
  return 0;
}

/// The job, whose cases are then in the corpus.
conformance::Job read_job(const BackendOptions& options) {
  conformance::Job job = conformance::read_job(options.job);
  if (!job.corpus.empty()) conformance::add_cases(job.corpus);
  return job;
}

int plan(const BackendOptions& options) {
  const conformance::Job job = read_job(options);
  std::printf("%s\n", plan_text(job, conformance::Runtime().plan(job, {})).c_str());
  return 0;
}

void print_event(const conformance::JobEvent& event) {
  std::printf("%s%s\n", std::string(conformance::kEventPrefix).c_str(), to_string(event).c_str());
  std::fflush(stdout);
}

int run(const BackendOptions& options) {
  const conformance::Job job = read_job(options);
  if (options.transport == "threads") {
    conformance::Runtime().run(job, options.out, print_event);
    return 0;
  }
#if PLUMBLINE_HAS_MPI
  transport::MpiSession mpi;
  if (mpi.size() != job.ranks)
    mpi.abort("the job is for " + std::to_string(job.ranks) + " ranks, mpirun started " + std::to_string(mpi.size()));
  const std::unique_ptr<transport::Transport> over_mpi = transport::make_mpi_transport(mpi);
  std::unique_ptr<transport::Transport> over_nccl;
  if (options.transport == "nccl") {
    try {
      over_nccl = transport::nccl::make_nccl_transport(transport::nccl::parse_library_choice(options.nccl), *over_mpi,
                                                       transport::from_seconds(job.timeout_seconds));
    } catch (const Error& error) {
      mpi.abort(error.what());
    }
  }
  conformance::Runtime(over_nccl ? over_nccl.get() : over_mpi.get()).run(job, options.out, print_event);
  return 0;
#else
  throw InputError("--transport " + options.transport + ": this plumbline was built without MPI");
#endif
}

}  // namespace

void add_backend(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<BackendOptions>();
  CLI::App* command = app.add_subcommand("backend", "The runtime as a backend; `plumbline run` starts it");
  command->require_subcommand(1);
  command->add_subcommand("describe", "Name, version and features, as JSON")->callback([&chosen] {
    chosen = [] { return describe(); };
  });
  CLI::App* plan_command = command->add_subcommand("plan", "For each case of a job: supported, or why not, as JSON");
  plan_command->add_option("--job", options->job, "The job file")->required();
  plan_command->callback([options, &chosen] { chosen = [options] { return plan(*options); }; });
  CLI::App* run_command = command->add_subcommand("run", "Run a job and write the results of each rank");
  run_command->add_option("--job", options->job, "The job file")->required();
  run_command->add_option("--out", options->out, "Folder for the results")->required();
  run_command->add_option("--transport", options->transport, "threads; or mpi or nccl (under mpirun)")
      ->check(CLI::IsMember({"threads", "mpi", "nccl"}))
      ->capture_default_str();
  run_command->add_option("--nccl", options->nccl, "For --transport nccl: as of `plumbline run`")
      ->type_name("LIBRARY[:WORD,...]");
  run_command->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace plumbline::cli
