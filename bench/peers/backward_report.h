// The rounds of C++ and Python side by side, as a table and as JSON.
#pragma once

#include <string>
#include <vector>

#include "bench/peers/backward_round.h"

namespace plumbline::bench {

struct BackwardComparison {
  std::vector<BackwardModel> models;
  int threads = 1;
  std::vector<BackwardRound> cpp, python;  ///< equally many; rounds of equal index ran in direct succession
};

/// One row per model. Times are medians of the best round, in milliseconds. Split over full is the median over the
/// rounds of each round's ratio of pairs; C++ over Python is the ratio of the best rounds.
std::string to_table(const BackwardComparison& comparison);

/// The numbers of the table, and for each round its medians and shortest times, in seconds. Ends with a newline.
std::string to_json(const BackwardComparison& comparison);

}  // namespace plumbline::bench
