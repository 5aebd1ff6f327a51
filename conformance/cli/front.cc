// plumbline: the conformance runner for pipeline-parallel training. One file per subcommand.
//
// LibTorch takes a third of a second to start. Subcommands that do not need it are executed here; for the others, this
// process becomes plumbline-torch (main.cc) with the same arguments.
//
// Exit codes: 0 all as expected; 1 something failed; 2 bad usage or input (one line names it and its place); 3 the run
// could not be judged.
#include <array>
#include <string_view>

#include "conformance/cli/commands.h"

namespace plumbline::cli {
namespace {

constexpr std::array<std::string_view, 5> kWithoutTorch = {"schedule", "simulate", "partition", "list", "report"};

[[noreturn]] void become_plumbline_torch() {
  std::vector<std::string> words = arguments();
  words.insert(words.begin(), program());
  execute_beside("plumbline-torch", words, "the build makes both programs, and `meson install` installs both");
}

int run_here(std::vector<char*> words) {
  CLI::App app;
  app.require_subcommand(1);
  Command chosen;
  add_schedule(app, chosen);
  add_simulate(app, chosen);
  add_partition(app, chosen, [](const PartitionSource&) -> partition::JointGraphFile { become_plumbline_torch(); });
  add_list(app, chosen);
  add_report(app, chosen);
  return run_chosen(app, "plumbline", chosen, static_cast<int>(words.size()), words.data());
}

int run(std::vector<char*> words) {
  if (words.size() > 1 && std::ranges::find(kWithoutTorch, words[1]) != kWithoutTorch.end())
    return run_here(std::move(words));
  try {
    become_plumbline_torch();
  } catch (const InputError& error) {
    std::fprintf(stderr, "plumbline: %s\n", error.what());
    return 2;
  }
}

}  // namespace
}  // namespace plumbline::cli

int main(int argc, char** argv) {
  plumbline::cli::remember_command_line(argc, argv);
  return plumbline::cli::run(plumbline::cli::with_help_last(argc, argv));
}
