// plumbline doctor: finds what is wrong with this machine, or with a backend's set-up.
#include "conformance/run/doctor.h"

#include <ATen/Parallel.h>

#include <iostream>

#include "conformance/cli/commands.h"
#include "conformance/protocol/process.h"

namespace plumbline::cli {

void add_doctor(CLI::App& app, Command& chosen) {
  auto backend = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Check step by step whether this machine is set up; with --backend, whether a backend is");
  command->add_option("--backend", *backend, "A backend.toml, or a command in quotes")->type_name("FILE.toml|CMD");
  command->callback([=, &chosen] {
    chosen = [backend] {
      at::set_num_threads(1);  // the oracle sums in the ranks' order
      conformance::end_children_on_signals();
      return backend->empty() ? conformance::examine_machine(std::cout)
                              : conformance::examine_backend(*backend, std::cout);
    };
  });
}

}  // namespace plumbline::cli
