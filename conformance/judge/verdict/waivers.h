// Waivers: a TOML file that lists the known deviations of a backend, so that every other result still counts.
//
// A waiver hides nothing: it states which status is expected, for which runs, why, where the deviation is discussed,
// and until when. The case still runs and is still judged. A matching verdict with the expected status becomes `xfail`.
// A pass becomes `xpass`, which counts as a failure, because the waiver is out of date; if each waiver that matches is
// of a race, it stays a pass. Any other status stays. Past its date a waiver waives nothing, and the run fails if the
// waiver still matches a verdict.
//
//   schema = "plumbline-waivers/1"
//   expires = 2027-03-01             # the last day, in UTC, on which the waivers hold that do not say it themselves
//   [[waiver]]
//   case = "tied-*"                  # a shell pattern that a case of the corpus must match, or a list of patterns
//   schedule = ["zb-*", "gpipe"]     # a shell pattern or a list of patterns; default: every schedule
//   when = { ranks = ">=4", transport = "mpi", dtype = "bf16", device = "cpu", backend = "torch-*", version = "<2.15" }
//   expect = "fail"                  # fail, error, timeout or mistrusted
//   race = true                      # the deviation is a race: a run may pass as well; default: false
//   says = "*got -3.25*"             # a shell pattern for the sentence of the finding, or a list of patterns
//   link = "https://..."             # where it is discussed; required
//   reason = "one sentence"
//   expires = 2027-01-01             # another last day; required where the file has none
//
// `says` separates causes that show in the same runs: when one of them is mended, the sentence changes, and the failure
// is no longer the expected one. Default: any sentence.
//
// Each condition of `when` is optional, and all must hold. `ranks` and `version` (of the backend) take a number, a
// string such as ">=2.11, <2.15", or a list of these, of which one must hold; `backend` is a shell pattern for its
// name.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "conformance/judge/verdict/verdict.h"

namespace plumbline::conformance {

/// The current date in UTC.
std::chrono::year_month_day today();

/// A condition on a number or a version: "4", ">=4", ">=2.11, <2.15". Every clause must hold.
struct VersionRange {
  struct Clause {
    std::string comparison;  ///< "==", "!=", "<", "<=", ">", ">="
    std::vector<int64_t> version;
  };
  std::vector<Clause> clauses;

  /// Whether a version is in the range. Only the dotted numbers at its beginning count ("2.15.0+cpu" is 2.15.0), and a
  /// missing number is 0 (2.15 equals 2.15.0). A text that does not begin with a number is in no range.
  bool holds(const std::string& version) const;
};

struct Waiver {
  std::string where;                                   ///< its place in the file: "file.toml:12"
  std::vector<std::string> case_globs;                 ///< one pattern must match
  std::vector<std::string> schedule_globs = {"*"};     ///< one pattern must match
  std::vector<VersionRange> ranks;                     ///< one range must hold; empty: any number
  std::string transport, dtype, device, backend_glob;  ///< empty: any
  std::vector<VersionRange> version;                   ///< of the backend: one range must hold; empty: any version
  Status expect = Status::Fail;
  bool is_race = false;                         ///< whether a run may pass as well
  std::vector<std::string> says_globs = {"*"};  ///< one pattern must match the finding's sentence
  std::string link, reason;
  std::chrono::year_month_day expires{};
};

/// The waivers of one file, applied to the verdicts of one run.
class Waivers {
 public:
  Waivers() = default;
  /// `day` decides which waivers have expired.
  Waivers(std::vector<Waiver> waivers, std::chrono::year_month_day day);

  /// Returns the verdict after waivers, and records for expired() and unused() which waivers match the run. If a
  /// matching unexpired waiver expects the verdict's status, the status becomes XFail; a Pass becomes XPass, or stays
  /// where the deviation is a race. Otherwise the status stays, and the reason of a failure is extended: it names a
  /// matching waiver that expects another status or another sentence, or has expired.
  Verdict applied(Verdict verdict, const std::string& backend_version);

  /// One line for each expired waiver that matched a verdict: the caller fails the run.
  std::vector<std::string> expired() const;
  /// One line for each waiver that matched no verdict, or a single line for all if there are more than three.
  std::vector<std::string> unused() const;

  const std::vector<Waiver>& all() const { return waivers_; }

 private:
  std::vector<Waiver> waivers_;
  std::vector<bool> matched_;
  std::chrono::year_month_day day_{};
};

/// Reads a file. Throws InputError, in one line with the file, the line and the expected values, for a file that cannot
/// be read, invalid TOML, another schema, an unknown or missing key, a value of another type, a case pattern that
/// matches none of `case_ids`, and an `expect` other than fail, error, timeout and mistrusted.
std::vector<Waiver> read_waivers(const std::filesystem::path& path, const std::vector<std::string>& case_ids);

}  // namespace plumbline::conformance
