// plumbline backend: the runtime in the role of a backend, as the supervisor starts it. Foreign backends answer to the
// same verbs.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "conformance/backend/run_job.h"
#include "conformance/chosen_schedule.h"
#include "conformance/cli/commands.h"
#include "conformance/context.h"
#include "conformance/corpus.h"
#include "conformance/judge.h"
#include "conformance/launch.h"
#include "conformance/plan.h"
#include "conformance/remat.h"
#include "runtime/error.h"
#include "runtime/schedule/orders/generators.h"
#if PLUMBLINE_HAS_MPI
#include "runtime/transport/mpi.h"
#endif

namespace plumbline {
namespace {

struct BackendOptions {
  std::string job, out, transport = "threads";
};

int describe_backend() {
  const nlohmann::json description = {
      {"name", "plumbline runtime"},
      {"version", plumbline_version()},
      {"schedules", schedule_names()},
      {"delivers", {"forward", "output", "loss", "backward", "partial", "grad", "buffer", "param"}}};
  std::printf("%s\n", description.dump(2).c_str());
  return 0;
}

int plan(const BackendOptions& options) {
  const Job job = read_job(options.job);
  nlohmann::json answers = nlohmann::json::array();
  for (const JobCase& item : job.cases) {
    std::string note, why;
    const Case c = with_microbatches(find_case(item.id), job.microbatches, note);
    try {
      const ChosenSchedule chosen{item.schedule, item.csv};
      const Schedule schedule = make_schedule(chosen, job.ranks, c.microbatches);
      why = why_unsupported(c, schedule, job.seed);
      const RematOptions remat{job.remat, job.remat_policy};
      if (why.empty() && remat.on()) why = why_not_partitioned(c, schedule.stages, job.seed, remat);
    } catch (const InputError& error) {
      why = error.what();
    }
    nlohmann::json answer = {{"id", item.id}, {"schedule", item.schedule}, {"supported", why.empty()}};
    if (!why.empty()) answer["why"] = why;
    answers.push_back(answer);
  }
  std::printf("%s\n", answers.dump(2).c_str());
  return 0;
}

void tell(const std::string& line) {
  std::printf("%s%s\n", std::string(kEventPrefix).c_str(), line.c_str());
  std::fflush(stdout);
}

int run(const BackendOptions& options) {
  const Job job = read_job(options.job);
  if (options.transport == "threads") {
    run_job_on_threads(job, options.out, tell);
    return 0;
  }
#if PLUMBLINE_HAS_MPI
  MpiSession mpi;
  if (mpi.size() != job.ranks)
    mpi.abort("the job is for " + std::to_string(job.ranks) + " ranks, mpirun started " + std::to_string(mpi.size()));
  const std::unique_ptr<Transport> transport = make_mpi_transport(mpi);
  run_job_on_rank(job, *transport, options.out, tell);
  return 0;
#else
  throw InputError("--transport mpi: this plumbline was built without MPI");
#endif
}

}  // namespace

void add_backend(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<BackendOptions>();
  CLI::App* command = app.add_subcommand("backend", "The runtime as a backend: what `plumbline run` starts");
  command->require_subcommand(1);
  command->add_subcommand("describe", "Name, version and abilities, as JSON")->callback([&chosen] {
    chosen = [] { return describe_backend(); };
  });
  CLI::App* plan_command = command->add_subcommand("plan", "For each case of a job: supported, or why not, as JSON");
  plan_command->add_option("--job", options->job, "The job file")->required();
  plan_command->callback([options, &chosen] { chosen = [options] { return plan(*options); }; });
  CLI::App* run_command = command->add_subcommand("run", "Run a job and write what each rank has to say");
  run_command->add_option("--job", options->job, "The job file")->required();
  run_command->add_option("--out", options->out, "Folder for the results")->required();
  run_command->add_option("--transport", options->transport, "threads, or mpi (under mpirun)")
      ->check(CLI::IsMember({"threads", "mpi"}))
      ->capture_default_str();
  run_command->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace plumbline
