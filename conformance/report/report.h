// All that one run of the conformance runner found out, as plain data; the writers beside this file turn it into text,
// JSON, JUnit and a picture.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "conformance/judge/verdict.h"

namespace plumbline::conformance {

/// Where the time of one rank went during the measured steps, in seconds for each step.
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
  double step_seconds = 0.0;  ///< median
  double microbatches_per_second = 0.0;
  double bubble_measured = 0.0;  ///< part of the ranks' time that is not work, 0 to 1
  double bubble_ideal = 0.0;     ///< the same in theory: (ranks - 1) / (micro-batches + ranks - 1) for 1F1B
  double ratio_to_ideal_step = 0.0;
  std::vector<RankTime> rank_times = {};
  /// What each rank did when in the last step, predicted above measured, as SVG; empty: not traced.
  std::string timeline = {};
};

/// Who was judged.
struct BackendIdentity {
  std::string name = "runtime";
  std::string version;  ///< empty: not told
  std::string device = "cpu";
  std::string describe;  ///< what it said about itself, as JSON; empty: it was not asked
};

struct RunReport {
  /// In the order in which people read it: version, git commit and whether dirty, hardware, command line, seed, ...
  std::vector<std::pair<std::string, std::string>> context;
  /// Variables of the environment that can change what was measured or computed.
  std::vector<std::pair<std::string, std::string>> environment;
  BackendIdentity backend;
  std::vector<Verdict> verdicts;
  std::vector<Throughput> throughput;
  /// What failed outside of any case, a line each.
  std::vector<std::string> broken;
  /// What is worth telling and fails nothing, a line each: a waiver that is about nothing.
  std::vector<std::string> notes;
  double wall_seconds = 0.0;
};

/// 1 when something failed (is_failure(), or outside of any case); else 3 when it could not be judged (something was
/// not run, or there is neither a Pass nor an XFail); else 0: Unsupported and Skipped beside at least one of these.
int exit_code(const RunReport& report);

/// How many verdicts have each status; statuses without one are absent.
std::map<Status, int> count_statuses(const std::vector<Verdict>& verdicts);

/// Puts the names of schedules in the order in which they are shown (schedule_kinds()); behind them, in the order in
/// which they stand, those that are no kind: files, and schedules of a case's own.
void put_in_order(std::vector<std::string>& schedules);

/// The matrix of a report: cases down, in the order of their first verdict, and schedules across, put_in_order().
struct Matrix {
  struct Row {
    std::string case_id;
    std::string title;
    reference::Truth truth = reference::Truth::Exact;
    std::vector<std::vector<const Verdict*>> cells;  ///< for each schedule its verdicts, the worst one first
  };
  std::vector<std::string> schedules;
  std::vector<Row> rows;
};

/// Of several verdicts for one cell (on several ranks, over several transports) the worst comes first, to be shown; the
/// others follow in their order. The cells point into `verdicts`.
Matrix matrix_of(const std::vector<Verdict>& verdicts);

}  // namespace plumbline::conformance
