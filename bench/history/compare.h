// Whether figures became better or worse between two runs.
//
// A timed figure changed if the rank test says so (the interval of the factor excludes 1) and the factor is at least
// the minimum effect: 3 %, or three times the history's own spread where that is more, beyond what the steady loop
// (steady_probe.h) moved by between the two. It is unchanged if the interval
// lies within the minimum effect, or if the test is sure of a change but the factor is below the minimum effect. In all
// other cases the samples cannot tell, and more are asked for; likewise if the steady loop moved so far that the
// machine itself changed its speed. A counted figure changed if its median changed by more than its tolerance: a
// noisy machine does not hide that.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/history/bench_run.h"

namespace plumbline::bench {

enum class Change { Regressed, Improved, Unchanged, CannotTell };

/// "regressed", "improved", "unchanged", "cannot tell"
const char* change_name(Change change);

struct Limits {
  double significance = 0.01;  ///< of the rank test
  double effect = 0.03;        ///< the smallest change of a timed figure that counts: 0.03 is 3 %
  double probe = 0.03;         ///< the change, or the spread, of the steady loop above which times are not compared
};

struct Judgement {
  Change change = Change::Unchanged;
  double before = 0, after = 0;  ///< medians
  double ratio = 1;              ///< after over before; timed: estimated from all samples
  std::string reason = {};       ///< CannotTell: why, and what would help
};

/// What moves times although the code is the same.
struct Noise {
  double spread = 0;   ///< relative_deviation() of the medians of earlier runs, 0 if there are too few
  double machine = 0;  ///< probe_shift()
};

Judgement compare_timed(std::span<const double> before, std::span<const double> after, Better better,
                        const Noise& noise, const Limits& limits);

/// `tolerance` as in Figure.
Judgement compare_counted(std::span<const double> before, std::span<const double> after, Better better,
                          double tolerance);

/// By which factor less 1 the steady loop became slower or faster, if it took `before` and `after` seconds; 0 if either
/// is empty.
double probe_shift(std::span<const double> before, std::span<const double> after);

/// Why the times of two runs cannot be compared, if the steady loop took `before` and `after` seconds; empty if they
/// can, or if either is empty.
std::string probe_moved(std::span<const double> before, std::span<const double> after, const Limits& limits);

/// The run of a history from which on a figure stayed changed.
struct Since {
  std::string commit, date;
  int runs = 1;            ///< that have the figure and were steady, from this one to the last
  bool confirmed = false;  ///< whether a second measurement agrees, or none is needed (a counted figure)
};

struct FigureChange {
  std::string benchmark;
  Figure figure;  ///< of the later run (of the earlier one, if the later lacks it)
  Judgement judgement;
  std::optional<Since> since = {};  ///< in a history, if it changed
};

/// Throws InputError if the figures `a` and `b`, of one name, have another unit, kind or better direction.
void expect_same_quantity(const std::string& benchmark, const Figure& a, const Figure& b);

/// Every figure of `before` and `after`, in their order. Each side may have several runs, the samples of which are
/// taken together; a figure that one side lacks cannot be told. Throws InputError if the hardware of any two runs
/// differs, and as expect_same_quantity() does for a figure of two runs.
std::vector<FigureChange> compare_runs(std::span<const BenchRun> before, std::span<const BenchRun> after,
                                       const Limits& limits);

}  // namespace plumbline::bench
