// plumbline export: writes cases as files that any language can read.
#include "conformance/cli/commands.h"
#include "conformance/cli/options/corpus_option.h"
#include "conformance/cli/options/seed_option.h"

namespace plumbline::cli {

void add_export(CLI::App& app, Command& chosen, const Actions& actions) {
  auto options = std::make_shared<ExportCommand>();
  CLI::App* command =
      app.add_subcommand("export", "Cases as files that any language can read (conformance/INTERPRETING.md)");
  command->add_option("--profile", options->profile, "The cases of a profile")->capture_default_str();
  command
      ->add_option("--case", options->case_glob,
                   "Only cases of the corpus whose id matches one of these patterns (* and ?)")
      ->type_name("GLOB,...");
  add_corpus_option(*command, options->corpus);
  command
      ->add_option("--schedule", options->schedule,
                   "Names, patterns or .csv files; a case's custom schedule takes precedence")
      ->capture_default_str();
  command->add_option("--ranks", options->ranks, "Ranks of the schedule")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  add_seed_option(*command, options->seed, "The seed of parameters and inputs");
  command->add_flag("--expected", options->expected, "Also write the expected results of each case");
  command->add_option("-o,--output", options->out,
                      "The folder to write to: ID/SCHEDULE-RANKS for each case, and manifest.json");
  command->add_option("--lock", options->lock,
                      "Write the hashes of the files that are the same on every machine to this file");
  command->add_option("--check-lock", options->check_lock, "Exit 1 if the hashes differ from those in this file");
  command->add_flag("--opset", options->opset, "Print the operators of exported programs, and exit");
  command->callback([=, execute = actions.export_cases, &chosen] { chosen = [=] { return execute(*options); }; });
}

}  // namespace plumbline::cli
