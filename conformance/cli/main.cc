// plumbline: the conformance runner for pipeline-parallel training. One file per subcommand.
//
// Exit codes: 0 all as expected; 1 something failed; 2 bad usage or input (one line names it and its place); 3 the run
// could not be judged.
#include "conformance/cli/commands.h"
#include "conformance/protocol/process.h"
#include "conformance/report/context.h"

namespace plumbline::cli {
namespace {

std::string& stored_command_line() {
  static std::string line;
  return line;
}
std::vector<std::string>& stored_arguments() {
  static std::vector<std::string> words;
  return words;
}

int run(int argc, char** argv) {
  CLI::App app{
      "plumbline: a reference for pipeline-parallel training.\n"
      "Splits a model into stages, runs a schedule over threads or MPI, and compares every output, loss and gradient\n"
      "with those of the unsplit model on one device.\n\n"
      "Begin with:  plumbline run                      the core cases on 4 ranks, as threads\n"
      "             plumbline run --transport mpi      the same over MPI processes\n"
      "             plumbline list                     the cases, and what each catches\n"
      "             plumbline run --program M.pt2      a model exported from Python"};
  app.set_version_flag("--version", conformance::plumbline_version());
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  Command chosen;
  add_run(app, chosen);
  add_list(app, chosen);
  add_mutants(app, chosen);
  add_split(app, chosen);
  add_export(app, chosen);
  add_partition(app, chosen);
  add_schedule(app, chosen);
  add_simulate(app, chosen);
  add_backend(app, chosen);
  add_check(app, chosen);
  add_report(app, chosen);
  add_doctor(app, chosen);
  add_bench(app, chosen);
  return run_chosen(app, "plumbline", chosen, argc, argv);
}

}  // namespace

void remember_command_line(int argc, char** argv) {
  for (int i = 0; i < argc; ++i) stored_command_line() += (i ? " " : "") + conformance::shell_word(argv[i]);
  stored_arguments().assign(argv + 1, argv + argc);
}

const std::string& command_line() { return stored_command_line(); }
const std::vector<std::string>& arguments() { return stored_arguments(); }

}  // namespace plumbline::cli

int main(int argc, char** argv) {
  plumbline::cli::remember_command_line(argc, argv);
  return plumbline::cli::run(argc, argv);
}
