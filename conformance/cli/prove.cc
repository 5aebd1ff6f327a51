// plumbline prove: shows that a pipelined run is the same computation as the unsplit model's.
#include "conformance/cli/commands.h"
#include "conformance/cli/options/corpus_option.h"
#include "conformance/cli/options/named_runs.h"
#include "conformance/cli/options/one_of.h"
#include "conformance/cli/options/program_options.h"
#include "conformance/cli/options/seed_option.h"
#include "runtime/engine/stage/recompute_options.h"
#include "runtime/error.h"
#include "runtime/partition/parity/partition_mode.h"

namespace plumbline::cli {

void add_prove(CLI::App& app, Command& chosen, const Actions& actions) {
  auto request = std::make_shared<ProveCommand>();
  proof::CasesOptions* const options = &request->cases;
  program::ProgramOptions* const program = &request->program;
  auto named = std::make_shared<NamedRuns>();
  CLI::App* command = app.add_subcommand(
      "prove",
      "Prove that pipelined runs are the same computation as the unsplit model: operators, operands, order of sums.\n"
      "The engine runs each case, and every value carries the identity of the term that made it: its operator, its\n"
      "arguments and the terms of its operands, down to parameters, buffers, rows of inputs and random draws. The\n"
      "unsplit model gives the expected terms. Equal terms hold for all inputs of these sizes, not for these numbers\n"
      "alone (docs/proof.md). A refutation names the operator, the stage and the micro-batch.\n"
      "--claim step asks of the unsplit model whether its step, micro-batch by micro-batch, is the step of the whole\n"
      "batch; no schedule counts then.\n"
      "Exit code: 0 all proven, 1 one is not, or the engine stopped, 2 bad usage or nothing that can be taken.\n\n"
      "Try:  plumbline prove --case exact-mlp-sum --ranks 2\n"
      "      plumbline prove --case 'transformer-lm' --schedule 'zb-*' --certificate proof.json\n"
      "      plumbline prove --case exact-read-by-all --schedule 1f1b --claim sum\n"
      "      plumbline prove --case 'uneven-mean,resnet-bn' --claim step\n"
      "      plumbline prove --case exact-mlp-mean --schedule 1f1b --mutant swap-microbatches\n"
      "      plumbline prove --program model.pt2 --stages 2");
  command
      ->add_option("--case", options->run.selection.case_glob,
                   "The cases whose id matches one of these patterns (* and ?); `plumbline list` prints them")
      ->type_name("GLOB,...");
  add_corpus_option(*command, options->run.corpus);
  command
      ->add_option("--schedule", named->schedules,
                   "Only schedules whose name matches, or one of your own from a file; several with commas between")
      ->type_name("GLOB|FILE.csv,...")
      ->capture_default_str();
  named->add_ranks(*command, 64, "How many ranks, each a thread; several numbers with commas between")
      ->default_str(std::to_string(conformance::kDefaultRanks));
  command
      ->add_option_function<std::string>(
          "--transport",
          [](const std::string& given) {
            if (given != "threads")
              throw InputError("--transport " + given + ": a proof takes threads; terms cross between threads only");
          },
          "threads: ranks are threads of this process; terms cross between them beside the messages")
      ->type_name("threads")
      ->default_str("threads");
  command
      ->add_option("--microbatches", options->run.microbatches,
                   "In place of each case's own number; batches get more rows where they need them")
      ->check(CLI::Range(1, 65536));
  command
      ->add_option("--mutant", options->run.mutant,
                   "Put this fault in on purpose: it must be refuted; `plumbline mutants` lists them")
      ->type_name("NAME");
  auto claim = std::make_shared<std::string>("computation");
  command
      ->add_option("--claim", *claim,
                   "computation: the same operators and operands, in the same order of every sum. sum: equal over the "
                   "real numbers; the order of a sum does not count, and factors commute with linear operators. step: "
                   "the micro-batches' losses and gradients add up to those of the whole batch, over the real numbers")
      ->check(CLI::IsMember({"computation", "sum", "step"}).description(""))
      ->type_name("computation|sum|step")
      ->capture_default_str();
  command
      ->add_option("--recompute", options->run.recompute,
                   "As for `plumbline run`: stages keep their inputs only and run their forward again in the backward. "
                   "Operators are then not counted")
      ->check(one_of(engine::kRecomputeWords))
      ->type_name(join(engine::kRecomputeWords, "|"))
      ->capture_default_str();
  CLI::Option* remat = command
                           ->add_option("--remat", options->run.remat.mode,
                                        "As for `plumbline run`: stages run their partitioned joint graphs. Operators "
                                        "are then not counted")
                           ->type_name("default|min-cut|aggressive|bytes|budget=X[:peak]");
  add_seed_option(*command, options->run.seed, "Of parameters, data and random layers");
  command
      ->add_option("--certificate", options->certificate,
                   "Write what was proven: terms of all results, operators, normalisations, assumptions, limits")
      ->type_name("F.json");
  command
      ->add_option("--terms", options->terms,
                   "Write the terms below all results of the only run, expected and found, as JSON")
      ->type_name("F.json");
  CLI::App* group = command->add_option_group("A program from Python (torch.export's .pt2)");
  add_step_options(*group, *program, "Prove the step of this archive, cut as by `plumbline run`, instead of cases");
  const std::vector<CLI::Option*> of_program = group->get_options();
  command->callback([=, execute = actions.prove, &chosen] {
    if (*claim == "sum") options->claim = proof::Claim::SameSum;
    request->whole_step = *claim == "step";
    if (remat->count() > 0) partition::parse_partition_mode(options->run.remat.mode);  // refuses an empty mode
    request->of_program = command->count("--program") > 0;
    if (request->of_program) {
      for (const char* other : {"--case", "--corpus", "--mutant", "--certificate", "--terms"})
        if (command->count(other) > 0)
          throw InputError(std::string(other) + " is about cases; it does not go with --program");
      if (request->whole_step) throw InputError("--claim step is about cases; a program takes computation or sum");
    } else {
      for (const CLI::Option* option : of_program)
        if (option->count() > 0) throw InputError(option->get_name() + " goes with --program M.pt2, which is missing");
      if (command->count("--case") == 0) throw InputError("--case GLOB or --program M.pt2 is missing");
    }
    if (request->whole_step)
      for (const char* other : {"--schedule", "--ranks", "--mutant", "--recompute", "--remat", "--terms"})
        if (command->get_option(other)->count() > 0)
          throw InputError(std::string("--claim step goes without ") + other +
                           ": it is about the unsplit model; --claim computation takes it");
    named->select(*command, options->run.selection);
    if (request->of_program) take_step_options(options->run, *program);
    chosen = [=] { return execute(*request); };
  });
}

}  // namespace plumbline::cli
