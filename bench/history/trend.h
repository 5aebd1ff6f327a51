// What a history of runs says about each figure: from which run on it has its present value, and whether that is better
// or worse than before. Runs are compared as in compare.h.
//
// The runs of a figure are passed through from the oldest. The first ones of a level, at most ten, are its reference,
// so that a slow drift adds up until it counts. A new level begins with a run that changed against the reference, if
// the next run (if there is one) changed in the same direction; a change that the next run does not confirm is an
// outlier. A timed change in the last run alone therefore still asks for a repetition. Runs in which the steady loop
// differs from its median over the history, or scatters, say nothing about times.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/history/compare.h"

namespace plumbline::bench {

/// One run's part in the series of a figure.
struct TrendPoint {
  size_t run = 0;      ///< index in the history
  double value = 0;    ///< median of the samples
  bool steady = true;  ///< false: the machine was not, so that the point is not judged
};

/// A run from which on a figure stayed changed.
struct ChangePoint {
  size_t run = 0;       ///< index in the history
  Judgement judgement;  ///< the new level against the one before
  int runs = 0;         ///< judged runs of the new level, at least 1
};

/// One figure over all runs that have it, oldest first.
struct Trend {
  std::string benchmark;
  Figure figure;  ///< of the last run that has it
  std::vector<TrendPoint> points;
  std::vector<ChangePoint> changes;
  /// Of the last change if it is recent, otherwise unchanged. CannotTell if the last run of the figure was not steady,
  /// or is the only one.
  Judgement now;
  /// The run in which `now` began; nothing unless it is an improvement or a regression.
  std::optional<ChangePoint> since;
};

/// The trends of all figures in the order of their last appearance. Only runs on the hardware of the last run count.
/// A change is recent if it is among the last `recent` runs of the figure. Throws InputError if a figure changes its
/// unit or its kind.
std::vector<Trend> trends(std::span<const BenchRun> history, const Limits& limits, int recent);

/// What the trends say now, for the writers of changes.h.
std::vector<FigureChange> changes_of(const std::vector<Trend>& trends, std::span<const BenchRun> history);

}  // namespace plumbline::bench
