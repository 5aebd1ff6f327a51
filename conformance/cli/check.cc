// plumbline check: judges a result folder again, looks through exported cases, or holds two recordings against each
// other.
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
#include "conformance/run/check.h"
#include "conformance/run/progress.h"
#include "runtime/error.h"

namespace plumbline::cli {
namespace {

constexpr size_t kMostShown = 10;

struct Options : conformance::CheckOptions {
  std::filesystem::path against;
  bool exact = false;
};

/// The first lines, and how many more there are.
void list(std::ostream& out, const std::vector<std::string>& lines, const std::string& before) {
  for (size_t i = 0; i < std::min(lines.size(), kMostShown); ++i) out << before << lines[i] << '\n';
  if (lines.size() > kMostShown) out << before << "and " << lines.size() - kMostShown << " more\n";
}

int check(const Options& options) {
  at::set_num_threads(1);  // the oracle adds up in the ranks' order
  const conformance::CheckResult result = conformance::check_folder(options);
  std::cout << conformance::matrix_text(
      result.verdicts, {conformance::wants_colour(STDOUT_FILENO), conformance::terminal_columns(STDOUT_FILENO)});
  std::vector<std::string> failures;
  for (const conformance::Verdict& verdict : result.verdicts)
    if (conformance::is_failure(verdict.finding.status)) failures.push_back(conformance::sentence(verdict));
  list(std::cout, failures, "\n");
  for (const std::string& note : result.notes) std::cout << "note: " << note << '\n';
  if (result.beyond_profile > 0)
    std::cout << "note: " << result.beyond_profile << " runs are not in profile " << options.profile << '\n';
  list(std::cout, result.missing, "missing: ");
  std::cout.flush();
  list(std::cerr, result.problems, "plumbline: ");
  std::cout << (result.problems.empty() ? "the folder says what its files say: " : "the folder is no sound record: ")
            << result.verdicts.size() << " runs, " << result.problems.size() << " problems, " << result.missing.size()
            << " missing\n";
  return exit_code(result);
}

int check_cases(const Options& options) {
  const conformance::ExportCheck result = conformance::check_export(options.folder);
  list(std::cerr, result.problems, "plumbline: ");
  std::cout << result.cases << " cases, " << result.files << " files: "
            << (result.problems.empty() ? "all are as they were exported\n"
                                        : std::to_string(result.problems.size()) + " problems\n");
  return result.problems.empty() ? 0 : 2;
}

/// What plumbline_recorder.py left of a training script's two runs.
int compare_recorded(const Options& options) {
  const conformance::AgainstVerdict verdict = conformance::hold_against(
      conformance::read_recording(options.folder), conformance::read_recording(options.against), !options.exact);
  std::cout << conformance::report_text(verdict);
  if (verdict.first) return 1;
  return verdict.agrees() ? 0 : 3;
}

}  // namespace

void add_check(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "check",
      "Judge the folder of a run again, from its files alone, and look whether it is complete.\n"
      "Exit 0: every verdict stands, and nothing failed; 1: something failed, or is missing from --profile; 2: the\n"
      "folder is no sound record (a file is missing, too much or unreadable, or a verdict is not what its files say);\n"
      "3: some of it was never run.\n"
      "Or look through what `plumbline export -o DIR` wrote: exit 0 when every file is as it was exported, else 2.\n"
      "With --against: hold what a pipeline recorded against what one rank recorded of the same training, and name "
      "the\n"
      "first module, micro-batch and direction that differ.");
  command
      ->add_option("DIR", options->folder,
                   "What `plumbline run --report DIR` left, `plumbline export -o DIR` wrote, or a recording")
      ->required();
  command
      ->add_option("--profile", options->profile,
                   "Every run of this profile must be there: " + join(conformance::profile_names()))
      ->type_name("P");
  command->add_option("--case", options->case_glob, "Only cases whose id matches this pattern")->type_name("GLOB");
  CLI::Option* against =
      command->add_option("--against", options->against, "The recording of one rank")->type_name("DIR2");
  command
      ->add_flag("--exact", options->exact,
                 "With --against: leave aside the perturbed runs that say how far rounding may move a value")
      ->needs(against);
  command->callback([=, &chosen] {
    const bool about_runs = command->count("--profile") > 0 || command->count("--case") > 0;
    if (against->count() > 0 && about_runs)
      throw InputError("--against is about recordings; it does not go with --profile and --case");
    chosen = [=] {
      if (!options->against.empty()) return compare_recorded(*options);
      if (!std::filesystem::exists(options->folder / "manifest.json")) return check(*options);
      if (about_runs)
        throw InputError("--profile and --case are about runs; " + options->folder.string() +
                         " holds exported cases (manifest.json)");
      return check_cases(*options);
    };
  });
}

}  // namespace plumbline::cli
