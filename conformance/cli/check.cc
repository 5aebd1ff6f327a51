// plumbline check: judges a result folder again, verifies exported cases, proves a certificate again, or compares two
// recordings.
#include "conformance/cli/commands.h"
#include "conformance/cli/options/corpus_option.h"
#include "runtime/error.h"

namespace plumbline::cli {

void add_check(CLI::App& app, Command& chosen, const Actions& actions) {
  auto options = std::make_shared<CheckCommand>();
  CLI::App* command = app.add_subcommand(
      "check",
      "Judge the folder of a run again, from its files alone, and check that it is complete. A pass without results\n"
      "(run --keep failures) is taken as recorded, and counted.\n"
      "Exit 0: every verdict is confirmed, and nothing failed; 1: something failed, or is missing from --profile; 2:\n"
      "the folder is inconsistent (a file is missing, unexpected or unreadable, or a verdict contradicts its files);\n"
      "3: some of it was never run, or was run on CUDA devices, of which this machine has none.\n"
      "Or verify what `plumbline export -o DIR` wrote: exit 0 if every file is unchanged, else 2.\n"
      "Or prove again what a certificate of `plumbline prove` says: exit 0 if all of it is confirmed and proven, 1 if\n"
      "it is confirmed and not all is proven, 2 if the same proof gives something else today.\n"
      "With --against: compare the recording of a pipeline with the recording of one rank for the same training, and\n"
      "name the first module, micro-batch and direction that differ.");
  command
      ->add_option(
          "DIR", options->folder,
          "The folder of `plumbline run --report DIR` or `plumbline export -o DIR`, a recording, or the file of\n"
          "`plumbline prove --certificate`")
      ->required();
  command
      ->add_option("--profile", options->profile,
                   "Every run of this profile must be present; `plumbline list --profiles` names them")
      ->type_name("P");
  command->add_option("--case", options->case_glob, "Only cases whose id matches one of these patterns")
      ->type_name("GLOB,...");
  CLI::Option* corpus = add_corpus_option(*command, options->corpus);
  CLI::Option* against =
      command->add_option("--against", options->against, "The recording of one rank")->type_name("DIR2");
  command
      ->add_flag("--exact", options->exact,
                 "With --against: ignore the perturbed runs, which measure how far rounding may move a value")
      ->needs(against);
  command->callback([=, execute = actions.check, &chosen] {
    options->selects_runs = command->count("--profile") > 0 || command->count("--case") > 0;
    if (against->count() > 0 && (options->selects_runs || corpus->count() > 0))
      throw InputError("--against compares recordings; it does not go with --profile, --case and --corpus");
    chosen = [=] { return execute(*options); };
  });
}

}  // namespace plumbline::cli
