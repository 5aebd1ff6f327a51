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
std::string& stored_program() {
  static std::string name;
  return name;
}
std::vector<std::string>& stored_arguments() {
  static std::vector<std::string> words;
  return words;
}

/// Lists each subcommand with the first sentence of its description; its own help has the rest.
class Summaries : public CLI::Formatter {
 public:
  std::string make_subcommand(const CLI::App* command) const override {
    std::string name = "  " + command->get_name();
    name.resize(std::max(column_width_, name.size() + 1), ' ');
    return name + first_sentence(command->get_description()) + '\n';
  }
};

/// `plumbline help X` is `plumbline X --help`.
std::vector<char*> with_help_last(int argc, char** argv) {
  static std::string option = "--help";
  std::vector<char*> words(argv, argv + argc);
  if (argc > 1 && std::string_view(argv[1]) == "help") {
    words.erase(words.begin() + 1);
    words.push_back(option.data());
  }
  return words;
}

int run(std::vector<char*> words) {
  CLI::App app{
      "plumbline: a reference for pipeline-parallel training.\n"
      "Splits a model into stages, runs a schedule over threads or MPI, and compares every output, loss and gradient\n"
      "with those of the unsplit model on one device.\n\n"
      "Begin with:  plumbline run                      the core cases on 2, 4 and 8 ranks, over each transport\n"
      "             plumbline run --profile smoke      a few of them, in half a minute\n"
      "             plumbline list                     the cases, and what each catches\n"
      "             plumbline run --program M.pt2      a model exported from Python"};
  app.set_version_flag("--version", conformance::plumbline_version());
  app.require_subcommand(1);
  app.formatter(std::make_shared<Summaries>());
  app.get_formatter()->column_width(34);
  Command chosen;
  add_run(app, chosen);
  add_prove(app, chosen);
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
  add_completion(app, chosen);
  app.add_subcommand("help", "All options of a subcommand (plumbline help run)");
  return run_chosen(app, "plumbline", chosen, static_cast<int>(words.size()), words.data());
}

}  // namespace

void remember_command_line(int argc, char** argv) {
  for (int i = 0; i < argc; ++i) stored_command_line() += (i ? " " : "") + conformance::shell_word(argv[i]);
  stored_program() = argv[0];
  stored_arguments().assign(argv + 1, argv + argc);
}

std::string first_sentence(std::string text) {
  for (size_t end = text.find_first_of(".:"); end != std::string::npos; end = text.find_first_of(".:", end + 1))
    if (end + 1 == text.size() || text[end + 1] == ' ' || text[end + 1] == '\n') text.resize(end);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

const std::string& command_line() { return stored_command_line(); }
const std::string& program() { return stored_program(); }
const std::vector<std::string>& arguments() { return stored_arguments(); }

}  // namespace plumbline::cli

int main(int argc, char** argv) {
  plumbline::cli::remember_command_line(argc, argv);
  return plumbline::cli::run(plumbline::cli::with_help_last(argc, argv));
}
