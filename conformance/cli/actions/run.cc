// plumbline run: runs cases under schedules and judges their results, or executes one step of a program.
#include <ATen/Parallel.h>

#include <iostream>

#include "conformance/cli/actions/execute.h"
#include "conformance/cli/commands.h"
#include "conformance/mutants/mutants.h"
#include "conformance/program/run.h"
#include "conformance/protocol/process/process.h"
#include "conformance/run/runner.h"
#include "runtime/error.h"
#if PLUMBLINE_HAS_MPI
#include "runtime/transport/mpi/mpi.h"
#endif

namespace plumbline::cli {

int execute_run(const RunCommand& command) {
  at::set_num_threads(1);  // the oracle adds up in the ranks' order
  conformance::RunOptions options = command.options;
  if (!options.mutant.empty()) options.mutant_ranks = conformance::find_mutant(options.mutant).least_ranks;
#if PLUMBLINE_HAS_MPI
  if (transport::launched_under_mpi()) {
    if (command.list) throw InputError("--list: not under mpirun; leave it out");
    return conformance::run_inside_mpi(options, std::cout);
  }
#endif
  conformance::end_children_on_signals();
  return command.list ? conformance::list_runs(options, std::cout) : conformance::run_supervised(options, std::cout);
}

int execute_program_run(const program::ProgramOptions& options) {
  return program::run_program(options, own_path(), arguments(), std::cout);
}

}  // namespace plumbline::cli
