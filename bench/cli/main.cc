// plumbline-bench: performance measurements. One file per subcommand; `plumbline bench ...` runs this program.
//
// Exit codes: 0 measured; 1 something failed; 2 bad usage or input (one line says what and where); 3 cannot be measured
// here.
#include "bench/cli/commands.h"

namespace plumbline::bench {
namespace {

int run(int argc, char** argv) {
  CLI::App app{
      "plumbline-bench: measures the performance of plumbline. Machines are noisy: count instructions first, then "
      "quote ratios.\n\n"
      "Begin with:  plumbline bench throughput --ranks 8 --sleep 5/10 --transport mpi\n"
      "                                           a step's time over the schedule's theoretical time\n"
      "             plumbline bench gaps times     why the ranks of your own script were idle\n"
      "             plumbline bench micro          each component; --benchmark_filter=interpreter for one of "
      "them\n"
      "             plumbline bench instructions   interpreter over module, counted\n"
      "             plumbline bench peers step --python PYTHON\n"
      "                                           steps of pipelines, against PyTorch's\n"
      "             plumbline bench peers backward --python PYTHON\n"
      "                                           a backward in halves, against PyTorch's\n"
      "             plumbline bench peers cut --python PYTHON\n"
      "                                           the minimum cut of a joint graph, against networkx\n\n"
      "Whether it got worse: measure with --history F.jsonl, then\n"
      "             plumbline bench history F.jsonl\n"
      "                                           each figure against the runs before, and since which commit",
      "plumbline bench"};
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  cli::Command chosen;
  add_throughput(app, chosen);
  add_gaps(app, chosen);
  add_micro(app, chosen);
  add_instructions(app, chosen);
  add_peers(app, chosen);
  add_proof(app, chosen);
  add_compare(app, chosen);
  add_history(app, chosen);
  add_export(app, chosen);
  add_alarm(app, chosen);
  return cli::run_chosen(app, "plumbline bench", chosen, argc, argv);
}

}  // namespace
}  // namespace plumbline::bench

int main(int argc, char** argv) { return plumbline::bench::run(argc, argv); }
