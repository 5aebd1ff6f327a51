// plumbline export: cases as files that any language can read.
#include <cstdio>
#include <filesystem>

#include "conformance/chosen_schedule.h"
#include "conformance/cli/commands.h"
#include "conformance/corpus.h"
#include "conformance/export/export_case.h"

namespace plumbline {
namespace {

struct ExportOptions {
  std::string profile = "core";
  std::string case_glob;
  std::string schedule = "1f1b";
  int ranks = 4;
  uint64_t seed = 1;
  std::string out;
};

int export_cases(const ExportOptions& options) {
  const std::vector<Case> all = profile(options.profile);
  const std::vector<Case> cases = options.case_glob.empty() ? all : select(all, options.case_glob);
  const std::vector<ChosenSchedule> schedules = choose_schedules(options.schedule);
  for (const Case& c : cases)
    for (const ChosenSchedule& chosen : schedules) {
      const Schedule schedule = make_schedule(chosen, options.ranks, c.microbatches);
      const std::filesystem::path folder =
          std::filesystem::path(options.out) / c.id / (chosen.name + "-" + std::to_string(options.ranks));
      export_case(c, schedule, options.seed, folder);
      std::printf("%s\n", folder.c_str());
    }
  return 0;
}

}  // namespace

void add_export(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command = app.add_subcommand("export", "Cases as files that any language can read");
  command->add_option("--profile", options->profile, "The cases of a profile")->capture_default_str();
  command->add_option("--case", options->case_glob, "Only cases whose id matches this pattern (* and ?)");
  command->add_option("--schedule", options->schedule, "Names, patterns or .csv files")->capture_default_str();
  command->add_option("--ranks", options->ranks, "Ranks of the schedule")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "What parameters and inputs are made from")->capture_default_str();
  command->add_option("-o", options->out, "The folder to write to")->required();
  command->callback([options, &chosen] { chosen = [options] { return export_cases(*options); }; });
}

}  // namespace plumbline
