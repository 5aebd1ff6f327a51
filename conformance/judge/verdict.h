// What the runner concludes about one case under one schedule, and the one line that tells a person.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/judge/compare.h"
#include "reference/case.h"

namespace plumbline::conformance {

enum class Status {
  Pass,
  Fail,         ///< ran, and a result differs from what it should be
  Unsupported,  ///< the backend said so before the run
  Skipped,      ///< this machine lacks something the case needs
  Error,        ///< crashed, or answered in a form that cannot be read
  Timeout,      ///< did not end by its deadline
  NotRun,       ///< never started (the backend would not start, or the run ended before it)
  Mistrusted,   ///< agrees, but with so many zeros that it proves little; counts as a failure
  XFail,        ///< waived: failed as a waiver expects
  XPass,        ///< passed where a waiver expects a failure; counts as a failure: the waiver is out of date
};

/// All of them, in the order of the enumeration.
inline constexpr Status all_statuses[] = {Status::Pass,  Status::Fail,    Status::Unsupported, Status::Skipped,
                                          Status::Error, Status::Timeout, Status::NotRun,      Status::Mistrusted,
                                          Status::XFail, Status::XPass};

/// "pass", "fail", "unsupported", "skipped", "error", "timeout", "not-run", "mistrusted", "xfail", "xpass".
std::string_view status_name(Status status);

/// The inverse of status_name; nothing for another text.
std::optional<Status> status_of(std::string_view name);

/// One ASCII character for the matrix: + X - s E T ? M w !.
char status_symbol(Status status);

/// Whether `status` counts against the backend: Fail, Error, Timeout, Mistrusted and XPass do.
bool is_failure(Status status);

/// The worse of two: what a cell of the matrix shows when several verdicts fall into it.
Status worse(Status a, Status b);

struct CaseVerdict {
  static constexpr size_t max_listed = 20;

  std::string case_id;
  std::string title;
  std::string schedule;
  std::string backend;                               ///< "runtime"; empty: not told
  std::string device;                                ///< "cpu"; empty: not told
  std::string dtype;                                 ///< of the case, "f32"; empty: not told
  int ranks = 0;                                     ///< 0: not told
  std::string transport;                             ///< "threads", "mpi"; empty: not told
  reference::Truth truth = reference::Truth::Exact;  ///< by which it was judged; a demotion is told in `reason`
  Status status = Status::NotRun;
  std::string reason;                ///< one line: why, where `first` does not say it
  std::optional<Difference> first;   ///< where the trouble begins
  std::vector<Difference> all;       ///< in causal order, at most max_listed
  int64_t differing = 0;             ///< tensors that differ, listed or not
  std::vector<std::string> checked;  ///< kinds of results that were compared: "forward", "loss", ...
  int64_t tensors = 0;               ///< compared
  int64_t elements = 0;
  double seconds = 0.0;
  /// Of bounded truth: how near the results came to their bounds.
  std::optional<BoundUse> bound_use;
  std::string waiver;  ///< of XFail and XPass: which waiver, its reason, link and date, in one line
  std::string repro;   ///< a command line that repeats just this case
};

/// Sets status (Pass or Fail), first, all and differing from what compare returned.
void set_differences(CaseVerdict& verdict, const std::vector<Difference>& differences);

/// "step 0, stage 2, micro-batch 3: backward `v17` f32[2,8] differs in 5 of 16 elements; first at [0,3]: expected 4,
/// got 4.004". One line, control characters made visible.
std::string sentence(const Difference& difference);

/// ", 3 ulp apart", to go on with after the sentence of real numbers that should have the same bits; empty for a
/// difference of another kind, and for values that lie no distance apart.
std::string ulps_clause(const Difference& difference);

/// "FAIL exact-mlp x 1f1b (4 ranks, mpi): " and the first difference, or the reason; for a pass, what was checked. One
/// line.
std::string sentence(const CaseVerdict& verdict);

/// "f32", "bf16", "f64", "f16".
std::string dtype_text(reference::Dtype dtype);

/// "4 ranks, mpi"; empty where the verdict does not say.
std::string place_of(const CaseVerdict& verdict);

}  // namespace plumbline::conformance
