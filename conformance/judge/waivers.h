// Waivers: what a backend is known to get wrong, told openly in a TOML file, so that everything else still counts.
//
// A waiver never hides anything. It says which failure is expected where, why, where that is discussed, and until when;
// the case still runs and is still judged. A failure of the expected kind becomes `xfail`; a pass becomes `xpass`,
// which fails, because the waiver is out of date; any other outcome stays what it is. Past its date a waiver waives
// nothing and is itself a failure.
//
//   schema = "plumbline-waivers/1"
//   [[waiver]]
//   case = "tied-*"                  # a shell pattern that some case of the corpus must match, or a list of such
//   schedule = ["zb-*", "gpipe"]     # likewise; every one, if left out
//   when = { ranks = ">=4", transport = "mpi", dtype = "bf16", device = "cpu", backend = "torch-*", version = "<2.15" }
//   expect = "fail"                  # fail, error, timeout or mistrusted
//   link = "https://..."             # where it is discussed; compulsory
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

  /// Whether a version ("2.15.0+cpu": what follows the dotted numbers does not count) is in the range. A text without
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

/// The waivers of one file and what became of them in one run.
class Waivers {
 public:
  Waivers() = default;
  Waivers(std::vector<Waiver> waivers, std::chrono::year_month_day day);

  /// The verdict, with Pass as XPass and an expected failure as XFail where a waiver that has not expired speaks of it.
  /// Where waivers do, but of another failure, or are too old, the verdict stays, and its reason says so.
  Verdict applied(Verdict verdict, const std::string& backend_version);

  /// Waivers that have expired although a verdict seen is theirs, a line each: these fail the run.
  std::vector<std::string> expired() const;
  /// Waivers that no verdict seen is theirs of, to be told: a line each, or one line where there are many.
  std::vector<std::string> unused() const;

  const std::vector<Waiver>& all() const { return waivers_; }

 private:
  std::vector<Waiver> waivers_;
  std::vector<bool> matched_;
  std::chrono::year_month_day day_{};
};

/// Reads a file. InputError in one line, with file, line and what would be accepted: no TOML, an unknown or missing
/// key, a value of another kind, a case pattern that matches none of `case_ids`, an expectation that would waive more
/// than a failure.
std::vector<Waiver> read_waivers(const std::filesystem::path& path, const std::vector<std::string>& case_ids);

}  // namespace plumbline::conformance
