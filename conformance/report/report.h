// The result of one run of the conformance runner, as plain data. The writers in this folder turn it into text, JSON,
// JUnit and a picture.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "conformance/judge/verdict.h"

namespace plumbline::conformance {

/// The time of one rank during the measured steps, in seconds per step.
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
  double bubble_measured = 0.0;  ///< fraction of the ranks' time that is not work, 0 to 1
  double bubble_ideal = 0.0;     ///< the same in theory: (ranks - 1) / (micro-batches + ranks - 1) for 1F1B
  double ratio_to_ideal_step = 0.0;
  std::vector<RankTime> rank_times = {};
  /// The timeline of each rank in the last step, predicted above measured, as SVG; empty: not traced.
  std::string timeline = {};
};

/// The judged backend.
struct BackendIdentity {
  std::string name = "runtime";
  std::string version;  ///< empty: unknown
  std::string device = "cpu";
  std::string describe;  ///< its answer to `describe`, as JSON; empty: it was not asked
};

struct RunReport {
  /// In reading order: version, git commit and whether dirty, hardware, command line, seed, ...
  std::vector<std::pair<std::string, std::string>> context;
  /// Environment variables that can change results or measurements.
  std::vector<std::pair<std::string, std::string>> environment;
  BackendIdentity backend;
  std::vector<Verdict> verdicts;
  std::vector<Throughput> throughput;
  /// Failures outside of any case, one line each.
  std::vector<std::string> broken;
  /// Remarks that are not failures, one line each: a waiver that matched no case.
  std::vector<std::string> notes;
  double wall_seconds = 0.0;
};

/// 1 if anything failed (is_failure(), or outside of any case); else 3 if the run could not be judged (a NotRun, or
/// neither a Pass nor an XFail); else 0: at least one Pass or XFail, beside any number of Unsupported and Skipped.
int exit_code(const RunReport& report);

/// The number of verdicts of each status; statuses without any are absent.
std::map<Status, int> count_statuses(const std::vector<Verdict>& verdicts);

/// Sorts the names of schedules into display order (schedule_names()). Names outside of it, files and the custom
/// schedules of cases, follow in their original order.
void put_in_order(std::vector<std::string>& schedules);

/// The matrix of a report: cases as rows, in the order of their first verdict; schedules as columns, by put_in_order().
struct Matrix {
  struct Row {
    std::string case_id;
    std::string title;
    reference::Truth truth = reference::Truth::Exact;
    std::vector<std::vector<const Verdict*>> cells;  ///< by schedule: the verdicts, the worst one first
  };
  std::vector<std::string> schedules;
  std::vector<Row> rows;
};

/// If a cell has several verdicts (numbers of ranks, transports), the worst comes first and is the one shown; the
/// others follow in their order. The cells point into `verdicts`.
Matrix matrix_of(const std::vector<Verdict>& verdicts);

}  // namespace plumbline::conformance
