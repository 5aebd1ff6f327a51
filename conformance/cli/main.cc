// plumbline: the conformance runner for pipeline-parallel training. One file per subcommand.
//
// Exit codes: 0 all as expected; 1 something failed; 2 bad usage or input (one line says what and where); 3 could not
// judge.
#include <cstdio>
#include <filesystem>

#include "conformance/cli/commands.h"
#include "conformance/context.h"
#include "runtime/error.h"

namespace plumbline {
namespace {

std::string& stored_command_line() {
  static std::string line;
  return line;
}

int fail(const std::string& what, int code) {
  std::fprintf(stderr, "plumbline: %s\n", what.c_str());
  return code;
}

int run(int argc, char** argv) {
  CLI::App app{
      "plumbline: a reference for pipeline-parallel training.\n"
      "Splits a model into stages, runs a schedule over threads or MPI, and holds every output, loss and gradient\n"
      "against the model run whole on one device.\n\n"
      "Begin with:  plumbline run                      the core cases on 4 ranks, as threads\n"
      "             plumbline run --transport mpi      the same over MPI processes\n"
      "             plumbline list                     the cases, and what each hunts for"};
  app.set_version_flag("--version", plumbline_version());
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  Command chosen;
  add_run(app, chosen);
  add_list(app, chosen);
  add_schedule(app, chosen);
  add_backend(app, chosen);
  add_bench(app, chosen);
  if (argc > 1 && argv[1][0] != '-') {
    std::string known;
    bool found = false;
    for (const CLI::App* command : app.get_subcommands({})) {
      found = found || command->get_name() == argv[1];
      known += (known.empty() ? "" : ", ") + command->get_name();
    }
    if (!found) return fail("no subcommand '" + std::string(argv[1]) + "'; there are: " + known, 2);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) {
    return app.exit(wanted);
  } catch (const CLI::ParseError& error) {
    std::string what = error.what();
    for (char& c : what)
      if (c == '\n') c = ' ';
    const auto subcommands = app.get_subcommands();
    return fail(what + " (see plumbline " + (subcommands.empty() ? "" : subcommands[0]->get_name() + " ") + "--help)",
                2);
  }
  return chosen();
}

}  // namespace

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

void remember_command_line(int argc, char** argv) {
  for (int i = 0; i < argc; ++i) stored_command_line() += (i ? " " : "") + std::string(argv[i]);
}

const std::string& command_line() { return stored_command_line(); }

}  // namespace plumbline

int main(int argc, char** argv) {
  plumbline::remember_command_line(argc, argv);
  try {
    return plumbline::run(argc, argv);
  } catch (const plumbline::InputError& error) {
    return plumbline::fail(error.what(), 2);
  } catch (const std::exception& error) {
    return plumbline::fail(error.what(), 1);
  }
}
