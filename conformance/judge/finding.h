// The judge's finding on the results of one run, and its text form. No torch.
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
  Unsupported,  ///< the backend refused the case before the run
  Skipped,      ///< this machine lacks something the case needs
  Error,        ///< crashed, or answered in a form that cannot be read
  Timeout,      ///< did not end by its deadline
  NotRun,       ///< never started (the backend did not start, or the run ended earlier)
  Mistrusted,   ///< agrees, but most gradients are zero, which proves little; counts as a failure
  XFail,        ///< waived: failed as a waiver expects
  XPass,        ///< passed where a waiver expects a failure; counts as a failure: the waiver is out of date
};

/// All of them, in the order of the enumeration.
inline constexpr Status all_statuses[] = {Status::Pass,  Status::Fail,    Status::Unsupported, Status::Skipped,
                                          Status::Error, Status::Timeout, Status::NotRun,      Status::Mistrusted,
                                          Status::XFail, Status::XPass};

/// "pass", "fail", "unsupported", "skipped", "error", "timeout", "not-run", "mistrusted", "xfail", "xpass".
std::string_view status_name(Status status);

/// The name in capitals, to begin a line: "PASS", "NOT RUN", ...
std::string_view status_headline(Status status);

/// The inverse of status_name; nothing for another text.
std::optional<Status> status_of(std::string_view name);

/// One ASCII character for the matrix: + X - s E T ? M w !.
char status_symbol(Status status);

/// Whether `status` counts against the backend: Fail, Error, Timeout, Mistrusted and XPass do.
bool is_failure(Status status);

/// The worse of two: what a cell of the matrix shows when several verdicts fall into it.
Status worse(Status a, Status b);

struct Finding {
  static constexpr size_t max_listed = 20;

  reference::Truth truth = reference::Truth::Exact;  ///< the kind it was judged by; `reason` states a demotion
  Status status = Status::NotRun;
  std::string reason = {};                ///< one line: why, where `first` does not explain it
  std::optional<Difference> first = {};   ///< the first difference in causal order
  std::vector<Difference> all = {};       ///< in causal order, at most max_listed
  int64_t differing = 0;                  ///< tensors that differ, listed or not
  std::vector<std::string> checked = {};  ///< compared kinds of results: "forward", "loss", ...
  int64_t tensors = 0;                    ///< compared
  int64_t elements = 0;
  /// Bounded truth only: how close the results came to their bounds.
  std::optional<BoundUse> bound_use = {};
};

/// Sets status (Pass or Fail), first, all and differing from the result of compare().
void set_differences(Finding& finding, const std::vector<Difference>& differences);

/// "step 0, stage 2, micro-batch 3: backward `v17` f32[2,8] differs in 5 of 16 elements; first at [0,3]: expected 4,
/// got 4.004". One line, control characters made visible.
std::string sentence(const Difference& difference);

/// ", 3 ulp apart", appended to the sentence about real numbers that should have the same bits. Empty for a difference
/// of another kind, and for values with no distance between them.
std::string ulps_clause(const Difference& difference);

/// The first difference, or the checked kinds, and the reason. Empty if the finding has none of them.
std::string sentence(const Finding& finding);

}  // namespace plumbline::conformance
