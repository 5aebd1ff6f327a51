// plumbline backend: the runtime as a backend, started by the supervisor. Foreign backends implement the same verbs.
#include <torch/version.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "conformance/cli/commands.h"
#include "conformance/corpus/corpus.h"
#include "conformance/judge/judge.h"
#include "conformance/plan/plan.h"
#include "conformance/protocol/chosen_schedule.h"
#include "conformance/protocol/launch.h"
#include "conformance/protocol/protocol.h"
#include "conformance/report/context.h"
#include "conformance/run/run_job.h"
#include "runtime/error.h"
#if PLUMBLINE_HAS_MPI
#include "runtime/transport/mpi.h"
#endif

namespace plumbline::cli {
namespace {

struct BackendOptions {
  std::string job, out, transport = "threads";
};

int describe_backend() {
  conformance::BackendDescription runtime;
  runtime.name = "plumbline runtime";
  runtime.version = conformance::plumbline_version();
  runtime.features = {"throughput", "mutant", "recompute", "remat"};
  runtime.delivers = conformance::all_result_kinds();
  runtime.libtorch = TORCH_VERSION;
  std::printf("%s\n", conformance::description_text(runtime).c_str());
  return 0;
}

/// Why the runtime cannot run a case of the job; empty if it can.
std::string why_not(const conformance::JobCase& item, const conformance::Job& job, conformance::ModelFacts& models) {
  try {
    std::string note;
    const reference::Case c = conformance::with_microbatches(conformance::find_case(item.id), job.microbatches, note);
    const schedule::Schedule schedule =
        conformance::make_schedule({item.schedule, item.csv}, job.ranks, c.microbatches);
    std::string why = conformance::why_unsupported(c, schedule, models);
    const engine::RematOptions remat{job.remat, job.remat_policy};
    return why.empty() && remat.on() ? models.why_not_partitioned(c, schedule.stages, remat) : why;
  } catch (const InputError& error) {
    return error.what();
  }
}

int plan(const BackendOptions& options) {
  const conformance::Job job = conformance::read_job(options.job);
  const std::unique_ptr<conformance::ModelFacts> models = conformance::built_models(job.seed);
  nlohmann::json answers = nlohmann::json::array();
  for (const conformance::JobCase& item : job.cases) {
    const std::string why = why_not(item, job, *models);
    answers.push_back({{"id", item.id}, {"schedule", item.schedule}, {"supported", why.empty()}});
    if (!why.empty()) answers.back()["why"] = why;
  }
  std::printf("%s\n", answers.dump(1).c_str());
  return 0;
}

void tell(const std::string& line) {
  std::printf("%s%s\n", std::string(conformance::kEventPrefix).c_str(), line.c_str());
  std::fflush(stdout);
}

int run(const BackendOptions& options) {
  const conformance::Job job = conformance::read_job(options.job);
  if (options.transport == "threads") {
    conformance::run_job_on_threads(job, options.out, tell);
    return 0;
  }
#if PLUMBLINE_HAS_MPI
  transport::MpiSession mpi;
  if (mpi.size() != job.ranks)
    mpi.abort("the job is for " + std::to_string(job.ranks) + " ranks, mpirun started " + std::to_string(mpi.size()));
  const std::unique_ptr<transport::Transport> transport = transport::make_mpi_transport(mpi);
  conformance::run_job_on_rank(job, *transport, options.out, tell);
  return 0;
#else
  throw InputError("--transport mpi: this plumbline was built without MPI");
#endif
}

}  // namespace

void add_backend(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<BackendOptions>();
  CLI::App* command = app.add_subcommand("backend", "The runtime as a backend; `plumbline run` starts it");
  command->require_subcommand(1);
  command->add_subcommand("describe", "Name, version and features, as JSON")->callback([&chosen] {
    chosen = [] { return describe_backend(); };
  });
  CLI::App* plan_command = command->add_subcommand("plan", "For each case of a job: supported, or why not, as JSON");
  plan_command->add_option("--job", options->job, "The job file")->required();
  plan_command->callback([options, &chosen] { chosen = [options] { return plan(*options); }; });
  CLI::App* run_command = command->add_subcommand("run", "Run a job and write the results of each rank");
  run_command->add_option("--job", options->job, "The job file")->required();
  run_command->add_option("--out", options->out, "Folder for the results")->required();
  run_command->add_option("--transport", options->transport, "threads, or mpi (under mpirun)")
      ->check(CLI::IsMember({"threads", "mpi"}))
      ->capture_default_str();
  run_command->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace plumbline::cli
