// plumbline doctor: finds what is wrong with this machine, or with a backend's set-up.
#include "conformance/run/doctor.h"

#include <ATen/Parallel.h>

#include <iostream>

#include "conformance/cli/commands.h"
#include "conformance/protocol/process.h"
#include "conformance/run/hosts/examine_ranks.h"
#include "conformance/run/hosts/launcher.h"
#include "runtime/error.h"
#include "runtime/graph/error_text.h"
#if PLUMBLINE_HAS_MPI
#include "runtime/transport/mpi.h"
#endif

namespace plumbline::cli {

namespace {

/// Under mpirun.
int examine_as_rank() {
#if PLUMBLINE_HAS_MPI
  transport::MpiSession mpi;
  try {
    const std::unique_ptr<transport::Transport> transport = transport::make_mpi_transport(mpi);
    return conformance::examine_ranks(*transport, transport::mpi_host(), transport::mpi_library(), std::cout);
  } catch (const std::exception& error) {
    mpi.abort(graph::error_text(error));
  }
#else
  throw InputError("this plumbline was built without MPI");
#endif
}

bool is_rank() {
#if PLUMBLINE_HAS_MPI
  return transport::launched_under_mpi();
#else
  return false;
#endif
}

}  // namespace

void add_doctor(CLI::App& app, Command& chosen) {
  auto backend = std::make_shared<std::string>(), launcher = std::make_shared<std::string>(conformance::kLauncher);
  auto nccl = std::make_shared<std::string>();
  auto ranks = std::make_shared<int>(0);
  CLI::App* command = app.add_subcommand(
      "doctor",
      "Check step by step whether this machine is set up; with --backend, whether a backend is; with --ranks, or under "
      "mpirun, how several ranks are placed on hosts and cores, and the links between them");
  CLI::Option* backend_option =
      command->add_option("--backend", *backend, "A backend.toml, or a command in quotes")->type_name("FILE.toml|CMD");
  CLI::Option* ranks_option = command
                                  ->add_option("--ranks", *ranks,
                                               "Start so many ranks and examine their hosts, versions, folder, "
                                               "clocks, cores and links")
                                  ->check(CLI::Range(1, 4096))
                                  ->excludes(backend_option);
  command->add_option("--launcher", *launcher, "What starts them, on several hosts for example; {np} is their number")
      ->type_name("CMD")
      ->capture_default_str()
      ->needs(ranks_option);
  command
      ->add_option("--nccl", *nccl,
                   "Fail unless there is this NCCL, or stub; default: say whether there is libnccl.so.2")
      ->type_name("LIBRARY[:WORD,...]")
      ->excludes(backend_option)
      ->excludes(ranks_option);
  command->callback([=, &chosen] {
    chosen = [backend, nccl, ranks, launcher] {
      if (is_rank()) return examine_as_rank();
      at::set_num_threads(1);  // the oracle sums in the ranks' order
      conformance::end_children_on_signals();
      if (*ranks > 0)
        return conformance::examine_launched_ranks(conformance::parse_launcher(*launcher), *ranks, own_path(),
                                                   std::cout);
      return backend->empty() ? conformance::examine_machine(*nccl, std::cout)
                              : conformance::examine_backend(*backend, std::cout);
    };
  });
}

}  // namespace plumbline::cli
