// Finds the runs of a history at which the level of a figure changed (change-point detection), and judges whether the
// present level is better or worse than the one before.
//
// Terms:
// - The steady loop (steady_probe.h) is a fixed piece of work that a run times as well. A run is steady if the median
//   of its loop differs from that of the history by at most Limits::probe, and the loop scatters by at most as much; a
//   run without the loop counts as steady. In other runs the machine was disturbed: their timed figures are not judged.
//   Counted figures are judged in every run.
// - A level is a sequence of judged runs, one after the other, between which a figure did not change.
// - The reference of a level is the samples of its first run and of the next runs that did not change, ten at most.
//
// The judged runs of a figure are compared, from the oldest on, with the reference of the present level, as in
// compare.h. Since the reference does not move on, a slow drift adds up until it counts. A counted figure begins a new
// level at once with a run that changed. A timed figure begins one if its next judged run confirms the change: it
// differs from the same reference in the same direction. A timed change that the next run does not confirm is an
// outlier and stays outside the reference. A timed change in the last run begins a level without confirmation: repeat
// the measurement.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/history/compare.h"

namespace plumbline::bench {

/// A figure in one run.
struct TrendPoint {
  size_t run = 0;      ///< index in the history
  double value = 0;    ///< median of the samples, in Figure::unit
  bool steady = true;  ///< false: the run was not steady, and the point is not judged; always true for a counted figure
};

/// The first run of a new level.
struct ChangePoint {
  size_t run = 0;       ///< index in the history
  Judgement judgement;  ///< of this run against the reference of the level before
  int runs = 0;         ///< the judged runs from this one to the end of the level, outliers included; at least 1
};

/// One figure over all runs that have it.
struct Trend {
  std::string benchmark;
  Figure figure;                     ///< as in the last run that has it
  std::vector<TrendPoint> points;    ///< one for each run that has the figure, oldest first
  std::vector<ChangePoint> changes;  ///< oldest first
  /// The judgement of the last change, if that change is recent: Regressed or Improved. Otherwise the judgement of the
  /// last judged run against the reference of the present level: Unchanged or CannotTell. CannotTell also if the last
  /// run that has the figure was not steady, or if only one run of it could be judged.
  Judgement now;
  /// The last change, if `now` is Regressed or Improved; otherwise empty.
  std::optional<ChangePoint> since;
};

/// Returns the trends of all figures, in the order of the last run that has each. `history` is oldest first; its runs
/// on other hardware than that of the last run are ignored. A change is recent if its level has at most `recent` judged
/// runs. Throws InputError if a figure has another unit, kind or better direction in one run than in another.
std::vector<Trend> trends(std::span<const BenchRun> history, const Limits& limits, int recent);

/// Converts Trend::now of each trend, with the commit and the date of Trend::since, for the writers of changes.h.
/// `history` is the one from which trends() computed `trends`.
std::vector<FigureChange> changes_of(const std::vector<Trend>& trends, std::span<const BenchRun> history);

}  // namespace plumbline::bench
