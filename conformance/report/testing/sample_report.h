// A report with one of everything, for the tests of the writers and readers of reports.
#pragma once

#include <cstring>
#include <limits>

#include "conformance/report/report.h"

namespace plumbline::conformance {

inline Verdict sample_verdict(const std::string& case_id, const std::string& schedule, Status status,
                              const std::string& reason = "") {
  Verdict v;
  v.run.case_id = case_id;
  v.title = "the case " + case_id;
  v.run.schedule = schedule;
  v.backend = "runtime";
  v.device = "cpu";
  v.dtype = "f32";
  v.run.ranks = 4;
  v.run.transport = "threads";
  v.finding.status = status;
  v.finding.reason = reason;
  v.finding.checked = {"forward", "grad"};
  v.finding.tensors = 3;
  v.finding.elements = 24;
  v.seconds = 0.5;
  v.repro = "plumbline run --case " + case_id + " --schedule " + schedule;
  return v;
}

/// Twelve numbers, the sixth of them wrong, and another tensor missing.
inline Verdict sample_failure() {
  std::vector<double> expected(12, 1.0), actual(12, 1.0);
  actual[5] = std::numeric_limits<double>::infinity();
  Verdict v = sample_verdict("exact-<mlp>", "1f1b", Status::Fail);
  v.log = "results/own-4/logs/1f1b/exact-<mlp> #1/backend.log";
  set_differences(v.finding,
                  compare({{"0/backward/2/3/v17", make_f64({2, 6}, expected)}, {"0/grad/-/-/w", make_f64({}, {1})}},
                          {{"0/backward/2/3/v17", make_f64({2, 6}, actual)}}, CompareMode::Numeric));
  return v;
}

/// A bounded case: the error of the second of three elements is twice its bound.
inline Verdict sample_bounded() {
  Verdict v = sample_verdict("bounded-lm", "zb-v", Status::Fail);
  v.finding.truth = reference::Truth::Bounded;
  Bounds bounds;
  bounds.elements["0/output/3/0/o"] = make_f64({3}, {0.5, 0.5, 0.5});
  bounds.norms["0/output/3/0/o"] = {10.0, 0.0};
  const TensorMap expected = {{"0/output/3/0/o", make_f64({3}, {1, 2, 3})}};
  const TensorMap actual = {{"0/output/3/0/o", make_f64({3}, {1.25, 3, 3})}};
  set_differences(v.finding, compare(expected, actual, CompareMode::Bounded, bounds));
  v.finding.bound_use = bound_use(expected, actual, bounds);
  return v;
}

inline RunReport sample_report() {
  RunReport report;
  report.context = {{"commit", "abc"}, {"dirty", "no"}, {"version", "0.1.0"}};
  report.environment = {{"OMP_NUM_THREADS", "1"}};
  report.backend = {"runtime", "0.1.0", "cpu", R"({"features":["loss"]})"};
  report.verdicts = {sample_failure(), sample_bounded()};
  for (const Status status : all_statuses)
    report.verdicts.push_back(
        sample_verdict("each-status", "with-" + std::string(status_name(status)), status, "because & \x01"));
  report.verdicts.back().waiver = "w.toml:3: known (https://x, until 2027-01-01)";
  report.throughput.push_back({"gpipe",
                               "real: mlp",
                               2,
                               4,
                               0.5,
                               8.0,
                               0.25,
                               0.2,
                               std::numeric_limits<double>::quiet_NaN(),
                               {{0.4, 0.1}, {0.3, 0.2}},
                               "<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>\n"});
  report.throughput.push_back({"1f1b", "sleep 5/10 ms", 2, 4, 0.5, 8.0, 0.25, 0.2, 1.1, {}});
  report.broken = {"the ranks died"};
  report.notes = {"a waiver matched no case"};
  report.wall_seconds = 12.5;
  return report;
}

}  // namespace plumbline::conformance
