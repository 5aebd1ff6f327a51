// plumbline mutants: the faults that can be injected, and the cases that kill them.
#include <ATen/Parallel.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "conformance/backend/built_models.h"
#include "conformance/cli/commands.h"
#include "conformance/cli/corpus_option.h"
#include "conformance/cli/named_runs.h"
#include "conformance/corpus/corpus.h"
#include "conformance/mutants/random_fault.h"
#include "conformance/mutants/try_mutants.h"
#include "conformance/plan/plan.h"
#include "conformance/protocol/process.h"
#include "runtime/error.h"
#include "runtime/io/write_file.h"

namespace plumbline::cli {
namespace {

struct MutantsOptions {
  NamedRuns named;
  conformance::RunOptions runs;
  std::string mutants = "*";
  bool matrix = false, full = false, json = false;
  int killers = 2;
  int random = 0;
  std::filesystem::path report, record, recorded;
};

int list(const MutantsOptions& options) {
  const std::vector<const conformance::Mutant*> selected = conformance::select_mutants(options.mutants);
  nlohmann::json all = nlohmann::json::array();
  for (const conformance::Mutant* mutant : selected) {
    nlohmann::json needs = nlohmann::json::array();
    if (mutant->least_ranks > 1) needs.push_back(std::to_string(mutant->least_ranks) + " ranks or more");
    for (const conformance::Need& need : mutant->needs) needs.push_back(need.what);
    all.push_back({{"name", mutant->name}, {"what", mutant->what}, {"needs", needs}, {"hangs", mutant->hangs}});
  }
  if (options.json) {
    std::cout << all.dump(2) << "\n";
    return 0;
  }
  size_t width = 0;
  for (const conformance::Mutant* mutant : selected) width = std::max(width, mutant->name.size());
  for (const conformance::Mutant* mutant : selected)
    std::cout << mutant->name << std::string(width + 2 - mutant->name.size(), ' ') << mutant->what << "\n";
  std::cout << selected.size() << " mutants\n";
  return 0;
}

/// The runs of the profile, with ranks as threads.
std::vector<conformance::RunId> places(conformance::RunOptions options) {
  options.selection.transport = conformance::TransportKind::Threads;
  options.selection.profile = options.selection.profile_or_default();
  std::vector<conformance::RunId> places;
  const std::unique_ptr<conformance::ModelFacts> models = conformance::built_models(options.seed);
  for (const conformance::PlannedRun& run : make_plan(options, *models).runs)
    if (run.unsupported.empty() && run.csv == conformance::find_case(run.id.case_id).schedule_csv)
      places.push_back({run.id.case_id, run.id.schedule, run.id.ranks});
  return places;
}

int matrix(const MutantsOptions& options) {
  at::set_num_threads(1);  // ranks share the cores, and sum in one order
  const std::vector<const conformance::Mutant*> selected = conformance::select_mutants(options.mutants);
  conformance::FaultRunner runner(options.runs.seed);
  const conformance::KillMatrix matrix = conformance::try_mutants(
      places(options.runs), selected, runner,
      {options.full ? 0 : options.killers, [](const std::string& line) { std::cout << line << "\n"
                                                                                   << std::flush; }});
  std::cout << "\n" << conformance::matrix_text(matrix);
  if (!options.report.empty()) {
    conformance::write_matrix(options.report, matrix);
    std::cout << "saved: " << (options.report / "kill-matrix.json").string() << ", kill-matrix.txt\n";
  }
  if (!options.record.empty()) {
    conformance::Killers killers;
    if (std::filesystem::exists(options.record)) killers = conformance::read_killers(options.record);
    for (auto& [mutant, found] : conformance::killers_of(matrix)) killers[mutant] = std::move(found);
    conformance::write_killers(options.record, killers);
    std::cout << "recorded: " << options.record.string() << "\n";
  }
  return conformance::survivors(matrix).empty() && matrix.broken.empty() ? 0 : 1;
}

int recorded(const MutantsOptions& options) {
  at::set_num_threads(1);
  conformance::FaultRunner runner(conformance::RunOptions().seed);
  const conformance::Killers killers = conformance::read_killers(options.recorded);
  const std::vector<std::string> problems = conformance::recorded_problems(killers, runner);
  for (const std::string& problem : problems) std::cout << "FAIL " << problem << "\n";
  std::cout << killers.size() << " mutants, each in two runs: "
            << (problems.empty() ? "all are killed as recorded" : std::to_string(problems.size()) + " problems")
            << "\n";
  return problems.empty() ? 0 : 1;
}

/// The command that repeats one fault. It selects the same runs, as the fault depends on them.
std::string repeat(const MutantsOptions& options, uint64_t seed) {
  std::string line = conformance::shell_word(program()) + " mutants --random 1 --seed " + std::to_string(seed);
  const conformance::Selection& chosen = options.runs.selection;
  if (const std::string profile = chosen.profile_or_default(); profile != conformance::Selection().profile_or_default())
    line += " --profile " + profile;
  if (!chosen.case_glob.empty()) line += " --case " + conformance::shell_word(chosen.case_glob);
  if (!options.runs.corpus.empty()) line += " --corpus " + conformance::shell_word(options.runs.corpus.string());
  if (chosen.schedules) line += " --schedule " + conformance::shell_word(*chosen.schedules);
  if (!chosen.ranks.empty()) line += " --ranks " + conformance::numbers_text(chosen.ranks, ",");
  return line;
}

int random_faults(const MutantsOptions& options) {
  at::set_num_threads(1);
  conformance::FaultRunner runner(conformance::RunOptions().seed);  // --seed is the seed of the faults
  conformance::RandomFaults faults(places(options.runs), runner);
  std::vector<conformance::RandomFault> all;
  nlohmann::json kept = nlohmann::json::array();
  for (int i = 0; i < options.random; ++i) {
    all.push_back(faults.put_in(options.runs.seed + static_cast<uint64_t>(i)));
    const conformance::RandomFault& fault = all.back();
    const std::string again = repeat(options, fault.seed);
    std::cout << conformance::fault_end_name(fault.end) << ": " << fault.what << ", in " << to_string(fault.run) << ": "
              << fault.why << "\n  repeat: " << again << "\n"
              << std::flush;
    kept.push_back({{"seed", fault.seed},
                    {"case", fault.run.case_id},
                    {"schedule", fault.run.schedule},
                    {"ranks", fault.run.ranks},
                    {"what", fault.what},
                    {"end", conformance::fault_end_name(fault.end)},
                    {"status", conformance::status_name(fault.status)},
                    {"why", fault.why},
                    {"repeat", again}});
  }
  std::cout << "\n" << conformance::summary(all);
  if (!options.report.empty()) {
    std::filesystem::create_directories(options.report);
    write_file(options.report / "random-faults.json",
               kept.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
  return std::any_of(all.begin(), all.end(),
                     [](const conformance::RandomFault& f) { return f.end == conformance::FaultEnd::Missed; })
             ? 1
             : 0;
}

}  // namespace

void add_mutants(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<MutantsOptions>();
  CLI::App* command = app.add_subcommand("mutants",
                                         "The faults that `run --mutant NAME` injects, and the cases that kill them.\n"
                                         "Without --matrix: lists them, each with a description");
  command->add_option("--mutant", options->mutants, "Only those whose name matches this pattern (* and ?)")
      ->type_name("GLOB")
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
      command->add_option("--profile", options->named.profile, "The profile of the runs: core, nightly or smoke")
          ->capture_default_str(),
      command
          ->add_option("--case", options->runs.selection.case_glob, "Only cases whose id matches one of these patterns")
          ->type_name("GLOB,..."),
      add_corpus_option(*command, options->runs.corpus),
      command->add_option("--schedule", options->named.schedules, "Only schedules whose name matches")
          ->type_name("GLOB")
          ->capture_default_str(),
      options->named.add_ranks(*command, 64, "Only on these numbers of ranks"),
      command
          ->add_option("--seed", options->runs.seed,
                       "With --matrix: of parameters, data and random layers; with --random: of the first fault, the "
                       "next ones count up from it")
          ->capture_default_str(),
      command->add_option("--report", options->report, "Save kill-matrix.json and .txt, or random-faults.json, there")
          ->type_name("DIR")};
  command->add_option("--killers", options->killers, "How many runs must kill each mutant")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str()
      ->needs(matrix_flag);
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
  command->callback([options, command, of_runs, matrix_flag, random, known, &chosen] {
    options->named.select(*command, options->runs.selection);
    if (matrix_flag->count() == 0 && random->count() == 0)
      for (const CLI::Option* option : of_runs)
        if (option->count() > 0) throw InputError(option->get_name() + " goes with --matrix or --random");
    if (random->count() > 0 && command->count("--mutant") > 0)
      throw InputError("--mutant goes with --matrix, or alone; random faults have no names");
    if (known->count() > 0 && command->count("--mutant") > 0)
      throw InputError("--mutant goes with --matrix, or alone; --recorded runs all of them");
    chosen = [options] {
      if (options->random > 0) return random_faults(*options);
      if (!options->recorded.empty()) return recorded(*options);
      return options->matrix ? matrix(*options) : list(*options);
    };
  });
}

}  // namespace plumbline::cli
