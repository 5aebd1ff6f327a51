// plumbline-bench: how fast it is. One file per subcommand; `plumbline bench ...` runs this program.
//
// Exit codes: 0 measured; 1 something failed; 2 bad usage or input (one line says what and where); 3 cannot be measured
// here.
#include <cstdio>

#include "bench/cli/commands.h"
#include "runtime/error.h"

namespace plumbline::bench {
namespace {

int fail(const std::string& what, int code) {
  std::fprintf(stderr, "plumbline-bench: %s\n", what.c_str());
  return code;
}

int run(int argc, char** argv) {
  CLI::App app{
      "plumbline-bench: how fast plumbline is. Machines are noisy: count instructions first, then quote ratios.\n\n"
      "Begin with:  plumbline bench throughput --ranks 8 --sleep 5/10 --transport mpi\n"
      "                                           a step's time over what the schedule takes in theory\n"
      "             plumbline bench micro          the parts one by one; --benchmark_filter=interpreter for one of "
      "them\n"
      "             plumbline bench instructions   interpreter over module, counted",
      "plumbline bench"};
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  Command chosen;
  add_throughput(app, chosen);
  add_micro(app, chosen);
  add_instructions(app, chosen);
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
    const std::string place = subcommands.empty() ? "" : subcommands[0]->get_name() + " ";
    return fail(what + " (see plumbline bench " + place + "--help)", 2);
  }
  return chosen();
}

}  // namespace
}  // namespace plumbline::bench

int main(int argc, char** argv) {
  try {
    return plumbline::bench::run(argc, argv);
  } catch (const plumbline::InputError& error) {
    return plumbline::bench::fail(error.what(), 2);
  } catch (const std::exception& error) {
    return plumbline::bench::fail(error.what(), 1);
  }
}
