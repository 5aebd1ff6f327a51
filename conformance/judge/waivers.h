// Waivers: a TOML file that lists the known deviations of a backend, so that every other result still counts.
//
// A waiver hides nothing. It states which failure is expected, for which runs, why, where the deviation is discussed,
// and until when. The case still runs and is still judged. A failure of the expected kind becomes `xfail`. A pass
// becomes `xpass`, which counts as a failure, because the waiver is out of date. Any other outcome is unchanged. Past
// its date a waiver waives nothing and is itself a failure.
//
//   schema = "plumbline-waivers/1"
//   [[waiver]]
//   case = "tied-*"                  # a shell pattern that a case of the corpus must match, or a list of patterns
//   schedule = ["zb-*", "gpipe"]     # a pattern or a list of patterns; default: every schedule
//   when = { ranks = ">=4", transport = "mpi", dtype = "bf16", device = "cpu", backend = "torch-*", version = "<2.15" }
//   expect = "fail"                  # fail, error, timeout or mistrusted
//   link = "https://..."             # where it is discussed; required
//   reason = "one sentence"
//   expires = 2027-03-01             # the last day on which it holds
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "conformance/judge/verdict.h"

namespace plumbline::conformance {

/// Today, in UTC.
std::chrono::year_month_day today();

/// A condition on a number or on a version: every clause must hold. "4", ">=4", ">=2.11, <2.15".
struct VersionRange {
  struct Clause {
    std::string comparison;  ///< "==", "!=", "<", "<=", ">", ">="
    std::vector<int64_t> version;
  };
  std::vector<Clause> clauses;

  /// Whether a version ("2.15.0+cpu": a suffix after the dotted numbers is ignored) is in the range. A text without
  /// numbers is in no range.
  bool holds(const std::string& version) const;
};

struct Waiver {
  std::string where;                                   ///< "file.toml:12"
  std::vector<std::string> case_globs;                 ///< one of them must match
  std::vector<std::string> schedule_globs = {"*"};     ///< likewise
  std::vector<VersionRange> ranks;                     ///< one of them must hold; empty: any
  std::string transport, dtype, device, backend_glob;  ///< empty: any
  std::vector<VersionRange> version;                   ///< of the backend, likewise
  Status expect = Status::Fail;
  std::string link, reason;
  std::chrono::year_month_day expires{};
};

/// The waivers of one file, applied to the verdicts of one run.
class Waivers {
 public:
  Waivers() = default;
  Waivers(std::vector<Waiver> waivers, std::chrono::year_month_day day);

  /// The verdict, with Pass turned into XPass and an expected failure into XFail if an unexpired waiver matches. If the
  /// matching waivers expect another failure or have expired, the verdict stays, and its reason names one of them.
  Verdict applied(Verdict verdict, const std::string& backend_version);

  /// Expired waivers that match a verdict of this run, a line each: these fail the run.
  std::vector<std::string> expired() const;
  /// Waivers that match no verdict of this run: a line each, or one line for all if there are many.
  std::vector<std::string> unused() const;

  const std::vector<Waiver>& all() const { return waivers_; }

 private:
  std::vector<Waiver> waivers_;
  std::vector<bool> matched_;
  std::chrono::year_month_day day_{};
};

/// Reads a file. Throws InputError, in one line with the file, the line and the expected values, for invalid TOML, an
/// unknown or missing key, a value of another kind, a case pattern that matches none of `case_ids`, and an expectation
/// that would waive more than a failure.
std::vector<Waiver> read_waivers(const std::filesystem::path& path, const std::vector<std::string>& case_ids);

}  // namespace plumbline::conformance
