// plumbline: the conformance runner for pipeline-parallel training.
//
// LibTorch takes a third of a second to start. This program reads the command line, refuses what is wrong, prints help,
// and executes the subcommands that do not need LibTorch. For the others it becomes plumbline-torch (actions/main.cc)
// with the same arguments.
//
// Exit codes: 0 all as expected; 1 something failed; 2 bad usage or input (one line names it and its place); 3 the run
// could not be judged.
#include "conformance/cli/commands.h"

namespace plumbline::cli {
namespace {

[[noreturn]] void become_plumbline_torch() {
  std::vector<std::string> words = arguments();
  words.insert(words.begin(), program());
  execute_beside("plumbline-torch", words, "the build makes both programs, and `meson install` installs both");
}

}  // namespace
}  // namespace plumbline::cli

int main(int argc, char** argv) {
  using namespace plumbline::cli;
  const auto become = [](const auto&...) -> int { become_plumbline_torch(); };
  return run_command_line(
      argc, argv,
      {.run_cases = become,
       .run_program = become,
       .prove = become,
       .mutants = become,
       .split = become,
       .export_cases = become,
       .backend = become,
       .check = become,
       .doctor = become,
       .read_program = [](const PartitionSource&) -> plumbline::partition::JointGraphFile { become_plumbline_torch(); },
       .version = []() -> std::string { become_plumbline_torch(); }});
}
