// plumbline bench: executes plumbline-bench, which is in the same folder as this program.
#include <unistd.h>

#include <filesystem>

#include "conformance/cli/commands.h"
#include "runtime/error.h"

namespace plumbline::cli {

void add_bench(CLI::App& app, Command& chosen) {
  CLI::App* command = app.add_subcommand(
      "bench", "Measure throughput, single operations, instructions, and against peers (runs plumbline-bench)");
  command->set_help_flag();  // plumbline-bench answers --help
  command->prefix_command();
  command->callback([command, &chosen] {
    chosen = [command]() -> int {
      const std::filesystem::path program = std::filesystem::path(own_path()).parent_path() / "plumbline-bench";
      std::vector<std::string> words = {program.string()};
      for (const std::string& word : command->remaining()) words.push_back(word);
      std::vector<char*> argv;
      for (std::string& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      execv(program.c_str(), argv.data());
      throw InputError("bench: there is no " + program.string() +
                       "; a build with Google Benchmark makes it, and `meson install` installs it");
    };
  });
}

}  // namespace plumbline::cli
