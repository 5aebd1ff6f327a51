// plumbline bench: executes plumbline-bench, which is in the same folder as this program.
#include "conformance/cli/commands.h"

namespace plumbline::cli {

void add_bench(CLI::App& app, Command& chosen) {
  CLI::App* command = app.add_subcommand(
      "bench", "Measure throughput, single operations, instructions, and against peers (runs plumbline-bench)");
  command->set_help_flag();  // plumbline-bench answers --help
  command->prefix_command();
  command->callback([command, &chosen] {
    chosen = [command]() -> int {
      std::vector<std::string> words = {"plumbline-bench"};
      for (const std::string& word : command->remaining()) words.push_back(word);
      execute_beside("plumbline-bench", words,
                     "a build with Google Benchmark makes it, and `meson install` installs it");
    };
  });
}

}  // namespace plumbline::cli
