// plumbline backend: the verbs of a backend, executed by the runtime. `plumbline run` starts it as it starts foreign
// backends.
#include "conformance/cli/commands.h"
#include "conformance/cli/options/one_of.h"
#include "conformance/protocol/transport_kind.h"

namespace plumbline::cli {

void add_backend(CLI::App& app, Command& chosen, const Actions& actions) {
  auto options = std::make_shared<BackendCommand>();
  CLI::App* command = app.add_subcommand("backend", "The runtime as a backend; `plumbline run` starts it");
  command->require_subcommand(1);
  const auto execute = [=, execute = actions.backend, &chosen](const CLI::App* verb) {
    return [=, &chosen] {
      options->verb = verb->get_name();
      chosen = [=] { return execute(*options); };
    };
  };
  CLI::App* describe_command = command->add_subcommand("describe", "Name, version and features, as JSON");
  describe_command->callback(execute(describe_command));
  CLI::App* plan_command = command->add_subcommand("plan", "For each case of a job: supported, or why not, as JSON");
  plan_command->add_option("--job", options->job, "The job file")->required();
  plan_command->callback(execute(plan_command));
  CLI::App* run_command = command->add_subcommand("run", "Run a job and write the results of each rank");
  run_command->add_option("--job", options->job, "The job file")->required();
  run_command->add_option("--out", options->out, "Folder for the results")->required();
  run_command->add_option("--transport", options->transport, "threads; or mpi or nccl (under mpirun)")
      ->check(one_of(conformance::kTransportOptions))
      ->type_name(join(conformance::kTransportOptions, "|"))
      ->capture_default_str();
  run_command->add_option("--nccl", options->nccl, "For --transport nccl: as of `plumbline run`")
      ->type_name("LIBRARY[:WORD,...]");
  run_command->callback(execute(run_command));
}

}  // namespace plumbline::cli
