// The parser of the whole command line.
#include "conformance/cli/commands.h"

#include <csignal>

namespace plumbline::cli {
namespace {

/// Lists each subcommand with the first sentence of its description; its own help has the rest.
class Summaries : public CLI::Formatter {
 public:
  std::string make_subcommand(const CLI::App* command) const override {
    std::string name = "  " + command->get_name();
    name.resize(std::max(column_width_, name.size() + 1), ' ');
    return name + first_sentence(command->get_description()) + '\n';
  }
};

}  // namespace

int run_command_line(int argc, char** argv, const Actions& actions) {
  conformance::open_closed_streams();
  remember_command_line(argc, argv);
  std::signal(SIGXFSZ, SIG_IGN);  // under `ulimit -f` a write then fails, which is told; children get the default back
  std::vector<char*> words = with_help_last(argc, argv);
  CLI::App app{
      "plumbline: a reference for pipeline-parallel training.\n"
      "Splits a model into stages, runs a schedule over threads or MPI, and compares every output, loss and gradient\n"
      "with those of the unsplit model on one device.\n\n"
      "Begin with:  plumbline run                      the core cases on 2, 4 and 8 ranks, over each transport\n"
      "             plumbline run --profile smoke      a few of them, in half a minute\n"
      "             plumbline list                     the cases, and what each catches\n"
      "             plumbline run --program M.pt2      a model exported from Python"};
  app.set_version_flag("--version", actions.version);
  app.require_subcommand(1);
  app.formatter(std::make_shared<Summaries>());
  app.get_formatter()->column_width(34);
  Command chosen;
  add_run(app, chosen, actions);
  add_prove(app, chosen, actions);
  add_list(app, chosen);
  add_mutants(app, chosen, actions);
  add_split(app, chosen, actions);
  add_export(app, chosen, actions);
  add_partition(app, chosen, actions.read_program);
  add_schedule(app, chosen);
  add_simulate(app, chosen);
  add_backend(app, chosen, actions);
  add_check(app, chosen, actions);
  add_report(app, chosen);
  add_doctor(app, chosen, actions);
  add_bench(app, chosen);
  add_completion(app, chosen);
  app.add_subcommand("help", "All options of a subcommand (plumbline help run)");
  return run_chosen(app, "plumbline", chosen, static_cast<int>(words.size()), words.data());
}

}  // namespace plumbline::cli
