// plumbline check: judges a result folder again, verifies exported cases, or compares two recordings.
#include <ATen/Parallel.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "conformance/cli/commands.h"
#include "conformance/corpus/corpus.h"
#include "conformance/export/check_export.h"
#include "conformance/recording/against.h"
#include "conformance/report/text.h"
#include "conformance/run/folder/check.h"
#include "conformance/run/progress.h"
#include "runtime/error.h"
#include "runtime/text/counted.h"

namespace plumbline::cli {
namespace {

constexpr size_t kMostShown = 10;

struct CheckCommand : conformance::CheckOptions {
  std::filesystem::path against;
  bool exact = false;
};

/// Prints the first lines and the number of the others.
void list(std::ostream& out, const std::vector<std::string>& lines, const std::string& before) {
  for (size_t i = 0; i < std::min(lines.size(), kMostShown); ++i) out << before << lines[i] << '\n';
  if (lines.size() > kMostShown) out << before << "and " << lines.size() - kMostShown << " more\n";
}

int check(const CheckCommand& options) {
  at::set_num_threads(1);  // the oracle sums in the ranks' order
  const conformance::CheckResult result = conformance::check_folder(options);
  const bool colour = conformance::wants_colour(STDOUT_FILENO);
  std::cout << conformance::matrix_text(result.verdicts, {colour, conformance::terminal_columns(STDOUT_FILENO)}) << '\n'
            << conformance::summary_text(result.verdicts, colour);
  std::vector<std::string> failures;
  for (const conformance::Verdict& verdict : result.verdicts)
    if (conformance::is_failure(verdict.finding.status)) failures.push_back(conformance::sentence(verdict));
  list(std::cout, failures, "\n");
  for (const std::string& note : result.notes) std::cout << "note: " << note << '\n';
  if (result.beyond_profile > 0)
    std::cout << "note: " << result.beyond_profile << " runs are not in profile " << options.profile << '\n';
  list(std::cout, result.missing, "missing: ");
  std::cout.flush();
  // The reason of an error among the failures above is not repeated.
  std::vector<std::string> untold = result.problems;
  std::erase_if(untold, [&](const std::string& problem) {
    return std::ranges::any_of(failures, [&](const std::string& failure) { return failure.ends_with(problem); });
  });
  list(std::cerr, untold, "plumbline: ");
  std::cout << (result.problems.empty() ? "the folder is consistent: " : "the folder is inconsistent: ")
            << counted(std::ssize(result.verdicts), "run") << ", "
            << (result.as_recorded > 0 ? std::to_string(result.as_recorded) + " passes as recorded, " : "")
            << counted(std::ssize(result.problems), "problem") << ", " << result.missing.size() << " missing\n";
  return exit_code(result);
}

int check_cases(const CheckCommand& options) {
  const conformance::ExportCheck result = conformance::check_export(options.folder);
  list(std::cerr, result.problems, "plumbline: ");
  std::cout << counted(result.cases, "case") << ", " << counted(result.files, "file") << ": "
            << (result.problems.empty() ? "all are unchanged since the export\n"
                                        : counted(std::ssize(result.problems), "problem") + "\n");
  return result.problems.empty() ? 0 : 2;
}

/// Compares the recordings that plumbline_recorder.py made of a training script's two runs.
int compare_recorded(const CheckCommand& options) {
  const conformance::AgainstVerdict verdict = conformance::hold_against(
      conformance::read_recording(options.folder), conformance::read_recording(options.against), !options.exact);
  std::cout << conformance::report_text(verdict);
  if (verdict.first) return 1;
  return verdict.agrees() ? 0 : 3;
}

}  // namespace

void add_check(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<CheckCommand>();
  CLI::App* command = app.add_subcommand(
      "check",
      "Judge the folder of a run again, from its files alone, and check that it is complete. A pass without results\n"
      "(run --keep failures) is taken as recorded, and counted.\n"
      "Exit 0: every verdict is confirmed, and nothing failed; 1: something failed, or is missing from --profile; 2:\n"
      "the folder is inconsistent (a file is missing, unexpected or unreadable, or a verdict contradicts its files);\n"
      "3: some of it was never run.\n"
      "Or verify what `plumbline export -o DIR` wrote: exit 0 if every file is unchanged, else 2.\n"
      "With --against: compare the recording of a pipeline with the recording of one rank for the same training, and\n"
      "name the first module, micro-batch and direction that differ.");
  command
      ->add_option("DIR", options->folder,
                   "The folder of `plumbline run --report DIR` or `plumbline export -o DIR`, or a recording")
      ->required();
  command
      ->add_option("--profile", options->profile,
                   "Every run of this profile must be present: " + join(conformance::profile_names()))
      ->type_name("P");
  command->add_option("--case", options->case_glob, "Only cases whose id matches one of these patterns")
      ->type_name("GLOB,...");
  CLI::Option* against =
      command->add_option("--against", options->against, "The recording of one rank")->type_name("DIR2");
  command
      ->add_flag("--exact", options->exact,
                 "With --against: ignore the perturbed runs, which measure how far rounding may move a value")
      ->needs(against);
  command->callback([=, &chosen] {
    const bool about_runs = command->count("--profile") > 0 || command->count("--case") > 0;
    if (against->count() > 0 && about_runs)
      throw InputError("--against compares recordings; it does not go with --profile and --case");
    chosen = [=] {
      if (!options->against.empty()) return compare_recorded(*options);
      if (!std::filesystem::exists(options->folder / "manifest.json")) return check(*options);
      if (about_runs)
        throw InputError("--profile and --case select runs; " + options->folder.string() +
                         " holds exported cases (manifest.json)");
      return check_cases(*options);
    };
  });
}

}  // namespace plumbline::cli
