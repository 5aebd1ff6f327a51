// plumbline check: judges a result folder again, verifies exported cases, proves a certificate again, or compares two
// recordings.
#include <ATen/Parallel.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "conformance/cli/actions/execute.h"
#include "conformance/corpus/corpus.h"
#include "conformance/export/check_export.h"
#include "conformance/proof/verify.h"
#include "conformance/recording/against.h"
#include "conformance/report/text.h"
#include "conformance/run/folder/check.h"
#include "conformance/run/progress.h"
#include "runtime/error.h"
#include "runtime/text/counted.h"

namespace plumbline::cli {
namespace {

constexpr size_t kMostShown = 10;

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
  list(std::cout, result.broken, "BROKEN ");
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

/// 3, with the reason on stderr, where the machine lacks the device of the runs.
int check_if_possible(const CheckCommand& options) {
  try {
    return check(options);
  } catch (const conformance::CannotCheckHere& error) {
    std::cerr << "plumbline: " << error.what() << '\n';
    return 3;
  }
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

int execute_check(const CheckCommand& options) {
  if (!options.against.empty()) return compare_recorded(options);
  if (std::filesystem::is_regular_file(options.folder)) {
    if (options.selects_runs)
      throw InputError("--profile and --case select runs of a folder; " + options.folder.string() + " is a file");
    at::set_num_threads(1);
    conformance::add_cases(options.corpus);
    return proof::verify_certificate(options.folder, std::cout);
  }
  if (!options.corpus.empty())
    throw InputError("--corpus goes with a certificate of plumbline prove; " + options.folder.string() +
                     " is none, and names its own cases");
  if (!std::filesystem::exists(options.folder / "manifest.json")) return check_if_possible(options);
  if (options.selects_runs)
    throw InputError("--profile and --case select runs; " + options.folder.string() +
                     " holds exported cases (manifest.json)");
  return check_cases(options);
}

}  // namespace plumbline::cli
