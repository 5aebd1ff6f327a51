// The judge's finding on the results of one run, and the sentences of reports about it. No torch.
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
  Fail,         ///< the case ran, and a result differs from the expected result
  Unsupported,  ///< the case cannot run under this schedule, or the backend refused the case before the run
  Skipped,      ///< nothing can be judged: this machine, the judge or the delivery lacks what the case needs
  Error,        ///< the run crashed, its results cannot be read, or the oracles disagree
  Timeout,      ///< the run did not end by its deadline
  NotRun,       ///< the case never started (the backend did not start, or the run ended earlier)
  Mistrusted,   ///< agreement proves little: gradients are zero or NaN, or exactness is unproven; counts as a failure
  XFail,        ///< waived: the case failed as a waiver expects
  XPass,        ///< the case passed, but a waiver expects a failure in every run; counts as a failure
};

/// All statuses, in the order of the enumeration.
inline constexpr Status all_statuses[] = {Status::Pass,  Status::Fail,    Status::Unsupported, Status::Skipped,
                                          Status::Error, Status::Timeout, Status::NotRun,      Status::Mistrusted,
                                          Status::XFail, Status::XPass};

/// "pass", "fail", "unsupported", "skipped", "error", "timeout", "not-run", "mistrusted", "xfail", "xpass".
std::string_view status_name(Status status);

/// The name in capitals, to begin a line: "PASS", "NOT RUN", ...
std::string_view status_headline(Status status);

/// The inverse of status_name(); nullopt for any other text.
std::optional<Status> status_of(std::string_view name);

/// One ASCII character for the matrix, in the order of the enumeration: + X - s E T ? M w !
char status_symbol(Status status);

/// Whether `status` counts against the backend: Fail, Error, Timeout, Mistrusted and XPass do.
bool is_failure(Status status);

/// The worse of two statuses, which a cell of the matrix shows if it summarises several verdicts. From best to worst:
/// Unsupported, Skipped, Pass, XFail, NotRun, XPass, Mistrusted, Timeout, Error, Fail.
Status worse(Status a, Status b);

struct Finding {
  static constexpr size_t max_listed = 20;

  reference::Truth truth = reference::Truth::Exact;  ///< the truth that judged the results; `reason` states a demotion
  Status status = Status::NotRun;
  std::string reason = {};                ///< one line that explains the status beyond `first`; may be empty
  std::optional<Difference> first = {};   ///< the first difference in causal order
  std::vector<Difference> all = {};       ///< in causal order, at most max_listed
  int64_t differing = 0;                  ///< number of tensors that differ, listed or not
  std::string pattern = {};               ///< what the wrong gradients have in common (likeness.h); may be empty
  std::vector<std::string> checked = {};  ///< names of the compared kinds of results, sorted: "forward", "loss", ...
  int64_t tensors = 0;                    ///< number of compared tensors
  int64_t elements = 0;                   ///< number of elements in them
  /// Bounded truth only: the margin to the bounds.
  std::optional<BoundUse> bound_use = {};
};

/// Sets `status` (Pass or Fail), `first`, `all` and `differing` from the result of compare().
void set_differences(Finding& finding, const std::vector<Difference>& differences);

/// "step 0, stage 2, micro-batch 3: backward `v17` f32[2,8] differs in 5 of 16 elements; first at [0,3]: expected 4,
/// got 4.004", followed by "; it is micro-batch 1's" if it resembles something. "step 0: gradient `w` of stage 2
/// f32[8,8] is missing". One line, with control characters escaped.
std::string sentence(const Difference& difference);

/// "stage 2", "stages 0, 3".
std::string stages_text(const std::vector<int>& stages);

/// The indices of an element: "[0,3]".
std::string position_text(const std::vector<int64_t>& position);

/// ", 3 ulp apart": the clause that a sentence about same-order truth appends. Empty for a difference other than Value
/// judged by bounds or with a likeness, and if ulps_between() gives no positive distance.
std::string ulps_clause(const Difference& difference);

/// The first difference, the number of others and the pattern or, for Pass and XPass, the number and kinds of the
/// compared tensors; then the reason. Empty if there is none of these.
std::string sentence(const Finding& finding);

}  // namespace plumbline::conformance
