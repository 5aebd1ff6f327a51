// plumbline doctor: finds what is wrong with this machine, or with a backend's set-up.
#include "conformance/run/doctor.h"

#include <ATen/Parallel.h>

#include <iostream>

#include "conformance/cli/actions/execute.h"
#include "conformance/cli/entry.h"
#include "conformance/protocol/process/process.h"
#include "conformance/run/hosts/examine_ranks.h"
#include "conformance/run/hosts/launcher.h"
#include "runtime/error.h"
#include "runtime/graph/error_text.h"
#if PLUMBLINE_HAS_MPI
#include "runtime/transport/mpi/mpi.h"
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

int execute_doctor(const DoctorCommand& command) {
  if (is_rank()) return examine_as_rank();
  at::set_num_threads(1);  // the oracle sums in the ranks' order
  conformance::end_children_on_signals();
  if (command.ranks > 0)
    return conformance::examine_launched_ranks(conformance::parse_launcher(command.launcher), command.ranks, own_path(),
                                               std::cout);
  return command.backend.empty() ? conformance::examine_machine(command.nccl, std::cout)
                                 : conformance::examine_backend(command.backend, std::cout);
}

}  // namespace plumbline::cli
