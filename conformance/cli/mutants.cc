// plumbline mutants: the faults that can be injected, and the cases that kill them.
#include "conformance/cli/commands.h"
#include "conformance/cli/options/corpus_option.h"
#include "conformance/cli/options/named_runs.h"
#include "conformance/cli/options/seed_option.h"
#include "runtime/error.h"

namespace plumbline::cli {

void add_mutants(CLI::App& app, Command& chosen, const Actions& actions) {
  auto options = std::make_shared<MutantsCommand>();
  auto named = std::make_shared<NamedRuns>();
  CLI::App* command = app.add_subcommand("mutants",
                                         "The faults that `run --mutant NAME` injects, and the cases that kill them.\n"
                                         "Without --matrix: lists them, each with a description");
  command->add_option("--mutant", options->mutants, "Only those whose name matches one of these patterns (* and ?)")
      ->type_name("GLOB,...")
      ->capture_default_str();
  command->add_flag("--json", options->json, "The list as JSON");
  CLI::Option* matrix_flag = command->add_flag(
      "--matrix", options->matrix,
      "Inject each mutant into runs of the profile, ranks as threads, until enough have killed it; exit 1 if one "
      "survives all");
  CLI::Option* random = command
                            ->add_option("--random", options->random,
                                         "Inject N random faults, one at a time: one value, message or action "
                                         "anywhere in a run; exit 1 if one changes a result and is missed")
                            ->type_name("N")
                            ->check(CLI::Range(1, 1000000))
                            ->excludes(matrix_flag);
  std::vector<CLI::Option*> of_runs = {
      command->add_option("--profile", named->profile, "The profile of the runs: core, nightly or smoke")
          ->capture_default_str(),
      command
          ->add_option("--case", options->runs.selection.case_glob, "Only cases whose id matches one of these patterns")
          ->type_name("GLOB,..."),
      add_corpus_option(*command, options->runs.corpus),
      command->add_option("--schedule", named->schedules, "Only schedules whose name matches")
          ->type_name("GLOB")
          ->capture_default_str(),
      named->add_ranks(*command, 64, "Only on these numbers of ranks"),
      add_seed_option(*command, options->runs.seed,
                      "With --matrix: of parameters, data and random layers; with --random: of the first fault, the "
                      "next ones count up from it"),
      command->add_option("--report", options->report, "Save kill-matrix.json and .txt, or random-faults.json, there")
          ->type_name("DIR")};
  CLI::Option* killers = command
                             ->add_option("--killers", options->killers,
                                          "How many runs must kill each mutant; with --recorded: 1 or 2 of its two")
                             ->check(CLI::Range(1, 1000))
                             ->capture_default_str();
  command->add_flag("--full", options->full, "Try every mutant on every run")->needs(matrix_flag);
  command
      ->add_option(
          "--record", options->record,
          "Write two runs that kill each mutant to this file (conformance/mutants/killers.json); the entries of "
          "mutants that were not tried stay")
      ->type_name("F.json")
      ->needs(matrix_flag);
  CLI::Option* known = command
                           ->add_option("--recorded", options->recorded,
                                        "Inject each mutant into the runs that kill it according to this file; exit 1 "
                                        "if one does not, or in another way")
                           ->type_name("F.json")
                           ->excludes(matrix_flag)
                           ->excludes(random);
  command->callback([=, execute = actions.mutants, &chosen] {
    named->select(*command, options->runs.selection);
    if (options->json && (matrix_flag->count() > 0 || random->count() > 0 || known->count() > 0))
      throw InputError("--json goes with the list of mutants, not with --matrix, --random or --recorded");
    if (matrix_flag->count() == 0 && random->count() == 0)
      for (const CLI::Option* option : of_runs)
        if (option->count() > 0) throw InputError(option->get_name() + " goes with --matrix or --random");
    if (random->count() > 0 && command->count("--mutant") > 0)
      throw InputError("--mutant goes with --matrix, or alone; random faults have no names");
    if (killers->count() > 0 && matrix_flag->count() == 0 && known->count() == 0)
      throw InputError("--killers goes with --matrix or --recorded");
    if (known->count() > 0 && options->killers > 2)
      throw InputError("--killers " + std::to_string(options->killers) +
                       ": expected 1 or 2, the runs that are recorded");
    if (known->count() > 0 && command->count("--mutant") > 0)
      throw InputError("--mutant goes with --matrix, or alone; --recorded runs all of them");
    chosen = [=] { return execute(*options); };
  });
}

}  // namespace plumbline::cli
