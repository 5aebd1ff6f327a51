// plumbline export: writes cases as files that any language can read.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "conformance/cli/commands.h"
#include "conformance/cli/corpus_option.h"
#include "conformance/corpus/corpus.h"
#include "conformance/export/export_corpus.h"
#include "conformance/export/opset.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/io/tensor_file.h"
#include "runtime/io/write_file.h"

namespace plumbline::cli {
namespace {

struct ExportOptions {
  std::string profile = "core";
  std::string case_glob;
  std::filesystem::path corpus;
  std::string schedule = "1f1b";
  int ranks = 4;
  uint64_t seed = 1;
  bool expected = false;
  std::string out;
  std::string lock, check_lock;
  bool opset = false;
};

int print_opset() {
  for (const conformance::OpsetEntry& entry : conformance::opset()) {
    std::string arguments;
    for (std::string_view argument : entry.arguments)
      arguments += (arguments.empty() ? "" : ", ") + std::string(argument);
    std::printf("%s(%s)\n", std::string(entry.name).c_str(), arguments.c_str());
  }
  return 0;
}

void say(const conformance::ExportedCase& c, bool quiet) {
  if (!c.refused.empty())
    std::fprintf(stderr, "not exported: %s x %s: %s\n", c.id.c_str(), c.schedule.c_str(), c.refused.c_str());
  else if (!quiet)
    std::printf("%s\n", c.folder.c_str());
}

int check_lock(const std::string& file, const std::string& present) {
  const std::vector<std::string> differences = conformance::lock_differences(read_file(file), present);
  for (const std::string& difference : differences) std::printf("%s\n", difference.c_str());
  if (differences.empty()) return 0;
  std::printf("%zu files differ from %s; if that is intended, rewrite it by --lock\n", differences.size(),
              file.c_str());
  return 1;
}

int export_cases(const ExportOptions& options) {
  if (options.opset) return print_opset();
  const bool locks = !options.lock.empty() || !options.check_lock.empty();
  if (options.out.empty() && !locks)
    throw InputError("export: nowhere to write to; give -o DIR, or --lock or --check-lock");
  at::set_num_threads(1);  // expected results are summed in the ranks' order
  const TemporaryFolder scratch;
  conformance::ExportRequest request;
  request.cases = options.case_glob.empty() ? conformance::profile(options.profile)
                                            : conformance::select(conformance::corpus(), options.case_glob);
  request.schedules = conformance::choose_schedules(options.schedule);
  request.ranks = options.ranks;
  request.seed = options.seed;
  request.expected = options.expected;
  request.out = options.out.empty() ? scratch.path() : std::filesystem::path(options.out);
  const std::vector<conformance::ExportedCase> cases =
      export_cases(request, [&](const conformance::ExportedCase& c) { say(c, options.out.empty()); });
  if (std::all_of(cases.begin(), cases.end(), [](const conformance::ExportedCase& c) { return !c.refused.empty(); }))
    throw InputError("export: none of " + std::to_string(cases.size()) + " could be exported, see above");
  const std::string lock = conformance::lock_text(cases);
  if (!options.lock.empty()) write_file(options.lock, lock);
  return options.check_lock.empty() ? 0 : check_lock(options.check_lock, lock);
}

}  // namespace

void add_export(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<ExportOptions>();
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
  command->add_option("--seed", options->seed, "The seed of parameters and inputs")->capture_default_str();
  command->add_flag("--expected", options->expected, "Also write the expected results of each case");
  command->add_option("-o,--output", options->out,
                      "The folder to write to: ID/SCHEDULE-RANKS for each case, and manifest.json");
  command->add_option("--lock", options->lock,
                      "Write the hashes of the files that are the same on every machine to this file");
  command->add_option("--check-lock", options->check_lock, "Exit 1 if the hashes differ from those in this file");
  command->add_flag("--opset", options->opset, "Print the operators of exported programs, and exit");
  command->callback([options, &chosen] { chosen = [options] { return export_cases(*options); }; });
}

}  // namespace plumbline::cli
