// plumbline run: runs cases under schedules and judges them.
#include <ATen/Parallel.h>

#include <iostream>

#include "conformance/cli/commands.h"
#include "conformance/process.h"
#include "conformance/runner.h"
#if PLUMBLINE_HAS_MPI
#include "runtime/transport/mpi.h"
#endif

namespace plumbline {

void add_run(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand(
      "run",
      "Run cases under schedules and hold every result against the oracles.\n"
      "Each cell of the matrix is one case under one schedule. A failure names the first stage, micro-batch and "
      "tensor\n"
      "that differ, and prints the command that repeats just it. Also works as: mpirun -n 4 plumbline run");
  command->add_option("--profile", options->profile, "Which cases: core, or smoke (a few, fast)")
      ->capture_default_str();
  command->add_option("--case", options->case_glob,
                      "Only cases whose id matches this pattern (* and ?), of any profile");
  command->add_option("--schedule", options->schedule_glob, "Only schedules whose name matches this pattern")
      ->capture_default_str();
  const std::map<std::string, TransportKind> transports = {{"threads", TransportKind::Threads},
                                                           {"mpi", TransportKind::Mpi}};
  command
      ->add_option("--transport", options->transport,
                   "threads: ranks are threads of one process; mpi: processes under mpirun")
      ->transform(CLI::CheckedTransformer(transports).description(""))
      ->type_name("threads|mpi")
      ->default_str("threads");
  command->add_option("--ranks", options->ranks, "How many ranks; one stage each")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--microbatches", options->microbatches, "In place of each case's own number")
      ->check(CLI::Range(1, 65536));
  command->add_option("--mutant", options->mutant,
                      "Put this fault in on purpose: drop-last-microbatch, swap-microbatches, scale-stage-gradient");
  command->add_option("--seed", options->seed, "Of parameters, data and random layers")->capture_default_str();
  command->add_option("--timeout", options->timeout_seconds, "Seconds that one wait for a message may last")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  command->add_option("--report", options->report, "Folder for matrix.svg, report.json, junit.xml and results/")
      ->capture_default_str();
  CLI::Option* throughput = command->add_flag("--throughput,!--no-throughput", options->throughput,
                                              "Measure each schedule's speed as well (default: for a whole profile)");
  command->callback([=, &chosen] {
    options->ranks_given = command->count("--ranks") > 0;
    options->transport_given = command->count("--transport") > 0;
    if (throughput->count() == 0) options->throughput = options->case_glob.empty() && options->mutant.empty();
    options->program = own_path();
    options->command_line = command_line();
    chosen = [options] {
      at::set_num_threads(1);  // the oracle adds up in the ranks' order
#if PLUMBLINE_HAS_MPI
      if (launched_under_mpi()) return run_inside_mpi(*options, std::cout);
#endif
      end_children_on_signals();
      return run_supervised(*options, std::cout);
    };
  });
}

}  // namespace plumbline
