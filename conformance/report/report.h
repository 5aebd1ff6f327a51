// The result of one run of the conformance runner, as plain data. The writers in this folder turn it into text, JSON,
// JUnit XML, an HTML page and a picture.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conformance/judge/verdict/verdict.h"

namespace plumbline::conformance {

/// The mean times of one rank in a measured step, in seconds.
struct RankTime {
  double busy = 0.0;
  double waiting = 0.0;
};

/// The speed of one schedule on one workload.
struct Throughput {
  std::string schedule;
  std::string workload;  ///< "sleep 5/10 ms", or "real: <model>"
  int ranks = 0;
  int microbatches = 0;
  double step_seconds = 0.0;  ///< median over the measured steps
  double microbatches_per_second = 0.0;
  double bubble_measured = 0.0;      ///< fraction of the ranks' time in which they do no work, 0 to 1
  double bubble_ideal = 0.0;         ///< the same in theory: (ranks - 1) / (micro-batches + ranks - 1) for 1F1B
  double ratio_to_ideal_step = 0.0;  ///< step_seconds / duration of the ideal step (run/throughput.h)
  std::vector<RankTime> rank_times = {};
  /// The timeline of all ranks in the last step as SVG, predicted above measured; empty: not traced.
  std::string timeline = {};
};

/// The judged backend.
struct BackendIdentity {
  std::string name = "runtime";
  std::string version;  ///< empty: unknown
  std::string device = "cpu";
  std::string describe;  ///< the backend's answer to the verb `describe`, as JSON; empty: not asked
};

struct RunReport {
  /// Names and values in reading order: see run_context().
  std::vector<std::pair<std::string, std::string>> context;
  /// Environment variables that can change results or measurements: see run_environment().
  std::vector<std::pair<std::string, std::string>> environment;
  BackendIdentity backend;
  std::vector<Verdict> verdicts;
  std::vector<Throughput> throughput;
  /// Failures outside of any case, one line each.
  std::vector<std::string> broken;
  /// Remarks that are not failures, one line each, for example on a waiver that matched no case.
  std::vector<std::string> notes;
  double wall_seconds = 0.0;  ///< duration of the whole run
};

/// Returns 1 if a verdict is a failure (is_failure()) or `broken` is not empty; else 3 if a verdict is NotRun or none
/// is Pass or XFail, so that the run proves nothing; else 0.
int exit_code(const RunReport& report);

/// The number of verdicts by status; statuses without a verdict are absent.
std::map<Status, int> count_statuses(const std::vector<Verdict>& verdicts);

/// Sorts names of schedules into display order, the order of schedule_names(). Other names (files, the built-in
/// schedules of cases) follow in their original order.
void put_in_order(std::vector<std::string>& schedules);

/// The kinds of truth of the verdicts of a row. A verdict that compared nothing (unsupported, say) has the truth of its
/// case, and others of the row may have been judged by a weaker one: it counts only where nothing was compared.
class RowTruths {
 public:
  void add(const Finding& finding) { (finding.tensors > 0 ? judged_ : unjudged_).insert(finding.truth); }
  /// From the strongest to the weakest. Empty without a verdict.
  const std::set<reference::Truth>& kinds() const { return judged_.empty() ? unjudged_ : judged_; }

 private:
  std::set<reference::Truth> judged_, unjudged_;
};

/// The matrix of a report: cases as rows, in the order of their first verdict; schedules as columns, by put_in_order().
struct Matrix {
  struct Row {
    std::string case_id;
    std::string title;
    RowTruths truths;
    std::vector<std::vector<const Verdict*>> cells;  ///< indexed as `schedules`: the verdicts, the worst first
  };
  std::vector<std::string> schedules;
  std::vector<Row> rows;
};

/// Returns the matrix, whose cells point into `verdicts`. A cell with several verdicts (for several numbers of ranks or
/// transports) begins with the worst by worse(), which writers show.
Matrix matrix_of(const std::vector<Verdict>& verdicts);

}  // namespace plumbline::conformance
