// plumbline doctor: finds what is wrong with this machine, or with a backend's set-up.
#include "conformance/run/doctor.h"

#include <ATen/Parallel.h>

#include <iostream>

#include "conformance/cli/commands.h"
#include "conformance/protocol/process.h"
#include "runtime/error.h"

namespace plumbline::cli {

void add_doctor(CLI::App& app, Command& chosen) {
  auto backend = std::make_shared<std::string>(), nccl = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Check step by step whether this machine is set up; with --backend, whether a backend is");
  command->add_option("--backend", *backend, "A backend.toml, or a command in quotes")->type_name("FILE.toml|CMD");
  command
      ->add_option("--nccl", *nccl,
                   "Fail unless there is this NCCL, or stub; default: say whether there is libnccl.so.2")
      ->type_name("LIBRARY[:WORD,...]");
  command->callback([=, &chosen] {
    if (!nccl->empty() && !backend->empty())
      throw InputError("--nccl is about this machine; it does not go with --backend");
    chosen = [backend, nccl] {
      at::set_num_threads(1);  // the oracle sums in the ranks' order
      conformance::end_children_on_signals();
      return backend->empty() ? conformance::examine_machine(*nccl, std::cout)
                              : conformance::examine_backend(*backend, std::cout);
    };
  });
}

}  // namespace plumbline::cli
