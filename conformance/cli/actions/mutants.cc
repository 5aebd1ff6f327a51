// plumbline mutants: the faults that can be injected, and the cases that kill them.
#include <ATen/Parallel.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "conformance/backend/built_models.h"
#include "conformance/cli/actions/execute.h"
#include "conformance/cli/commands.h"
#include "conformance/corpus/corpus.h"
#include "conformance/mutants/random_fault.h"
#include "conformance/mutants/try_mutants.h"
#include "conformance/plan/plan.h"
#include "conformance/protocol/process/process.h"
#include "conformance/run/folder/open_report.h"
#include "runtime/io/write_file.h"

namespace plumbline::cli {
namespace {

int list(const MutantsCommand& options) {
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
  conformance::add_cases(options.corpus);
  options.selection.transport = conformance::TransportKind::Threads;
  options.selection.profile = options.selection.profile_or_default();
  std::vector<conformance::RunId> places;
  const std::unique_ptr<conformance::ModelFacts> models = conformance::built_models(options.seed);
  for (const conformance::PlannedRun& run : make_plan(options, *models).runs)
    if (run.unsupported.empty() && run.csv == conformance::find_case(run.id.case_id).schedule_csv)
      places.push_back({run.id.case_id, run.id.schedule, run.id.ranks});
  return places;
}

int matrix(const MutantsCommand& options) {
  at::set_num_threads(1);  // ranks share the cores, and sum in one order
  const std::vector<const conformance::Mutant*> selected = conformance::select_mutants(options.mutants);
  conformance::FaultRunner runner(options.runs.seed);
  const std::vector<conformance::RunId> runs = places(options.runs);
  if (!options.report.empty()) conformance::make_report_folder(options.report);
  const conformance::KillMatrix matrix = conformance::try_mutants(
      runs, selected, runner,
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

int recorded(const MutantsCommand& options) {
  at::set_num_threads(1);
  conformance::FaultRunner runner(conformance::RunOptions().seed);
  const conformance::Killers killers = conformance::read_killers(options.recorded);
  const std::vector<std::string> problems = conformance::recorded_problems(killers, runner, options.killers);
  for (const std::string& problem : problems) std::cout << "FAIL " << problem << "\n";
  std::cout << killers.size() << " mutants, each in " << (options.killers == 1 ? "one of its two runs: " : "two runs: ")
            << (problems.empty() ? "all are killed as recorded" : std::to_string(problems.size()) + " problems")
            << "\n";
  return problems.empty() ? 0 : 1;
}

/// The command that repeats one fault. It selects the same runs, as the fault depends on them.
std::string repeat(const MutantsCommand& options, uint64_t seed) {
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

int random_faults(const MutantsCommand& options) {
  at::set_num_threads(1);
  conformance::FaultRunner runner(conformance::RunOptions().seed);  // --seed is the seed of the faults
  conformance::RandomFaults faults(places(options.runs), runner);
  if (!options.report.empty()) conformance::make_report_folder(options.report);
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
  if (!options.report.empty())
    write_file(options.report / "random-faults.json",
               kept.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  return std::any_of(all.begin(), all.end(),
                     [](const conformance::RandomFault& f) { return f.end == conformance::FaultEnd::Missed; })
             ? 1
             : 0;
}

}  // namespace

int execute_mutants(const MutantsCommand& options) {
  if (options.random > 0) return random_faults(options);
  if (!options.recorded.empty()) return recorded(options);
  return options.matrix ? matrix(options) : list(options);
}

}  // namespace plumbline::cli
