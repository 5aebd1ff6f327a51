// Reports how long the full backward and the split backward (its two halves) take in C++ and in Python, as a table and
// as JSON.
#pragma once

#include <string>
#include <vector>

#include "bench/peers/backward_round.h"

namespace plumbline::bench {

struct BackwardComparison {
  std::vector<ModelShape> models;  ///< in the order of BackwardRound::times
  int threads = 1;                 ///< the number of threads with which each side computes
  /// The rounds of each side: the same number for both, at least one. cpp[i] and python[i] ran one directly after the
  /// other.
  std::vector<BackwardRound> cpp, python;
};

/// Returns a table with one row for each model. For each side it has:
/// - "full", "split": milliseconds of a full and of a split backward. A round's time is the median over its pairs; the
///   table shows that of the fastest round.
/// - "split/full": the median over the rounds of BackwardTimes::ratio().
/// "C++ over Python" is the quotient of the two sides' times in the table.
std::string to_table(const BackwardComparison& comparison);

/// Returns a JSON document with a newline at the end. Times are in seconds. Besides the numbers of the table it has:
/// the number of threads, the version of LibTorch or torch of each side, the times of the two halves, and for each
/// round the number of pairs, the medians, the ratio, and the smallest time of a full and of a split backward.
std::string to_json(const BackwardComparison& comparison);

}  // namespace plumbline::bench
