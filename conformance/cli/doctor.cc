// plumbline doctor: finds what is wrong with this machine, or with a backend's set-up.
#include "conformance/cli/commands.h"
#include "conformance/run/hosts/launcher.h"

namespace plumbline::cli {

void add_doctor(CLI::App& app, Command& chosen, const Actions& actions) {
  auto options = std::make_shared<DoctorCommand>();
  options->launcher = conformance::kLauncher;
  CLI::App* command = app.add_subcommand(
      "doctor",
      "Check step by step whether this machine is set up; with --backend, whether a backend is; with --ranks, or under "
      "mpirun, how several ranks are placed on hosts and cores, and the links between them");
  CLI::Option* backend_option =
      command->add_option("--backend", options->backend, "A backend.toml, or a command in quotes")
          ->type_name("FILE.toml|CMD");
  CLI::Option* ranks_option = command
                                  ->add_option("--ranks", options->ranks,
                                               "Start so many ranks and examine their hosts, versions, folder, "
                                               "clocks, cores and links")
                                  ->check(CLI::Range(1, 4096))
                                  ->excludes(backend_option);
  command
      ->add_option("--launcher", options->launcher,
                   "What starts them, on several hosts for example; {np} is their number")
      ->type_name("CMD")
      ->capture_default_str()
      ->needs(ranks_option);
  command
      ->add_option("--nccl", options->nccl,
                   "Fail unless there is this NCCL, or stub; default: say whether there is libnccl.so.2")
      ->type_name("LIBRARY[:WORD,...]")
      ->excludes(backend_option)
      ->excludes(ranks_option);
  command->callback([=, execute = actions.doctor, &chosen] { chosen = [=] { return execute(*options); }; });
}

}  // namespace plumbline::cli
