// Formats the comparison of the C++ and Python rounds as a table and as JSON.
#pragma once

#include <string>
#include <vector>

#include "bench/peers/backward_round.h"

namespace plumbline::bench {

struct BackwardComparison {
  std::vector<ModelShape> models;          ///< in the order of BackwardRound::times
  int threads = 1;                         ///< of each side
  std::vector<BackwardRound> cpp, python;  ///< equally many, at least one; equal indices ran in succession
};

/// A table with one row per model. Times are in milliseconds: of each round the median, and of these the smallest.
/// Split over full is the median over the rounds of BackwardTimes::ratio(). C++ over Python divides the smallest
/// medians.
std::string to_table(const BackwardComparison& comparison);

/// The numbers of the table, and for each round its medians and its smallest times, as JSON with a final newline. Times
/// are in seconds.
std::string to_json(const BackwardComparison& comparison);

}  // namespace plumbline::bench
