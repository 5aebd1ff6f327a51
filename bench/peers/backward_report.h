// The rounds of C++ and Python side by side, as a table and as JSON.
#pragma once

#include <string>
#include <vector>

#include "bench/peers/backward_round.h"

namespace plumbline::bench {

struct BackwardComparison {
  std::vector<BackwardModel> models;
  int threads = 1;
  std::vector<BackwardRound> cpp, python;  ///< as many; those of one number ran one after the other
};

/// A row for each model. Times are medians of the best round, in milliseconds; ratios are medians over the rounds of
/// what each round gives: split over full by its own pairs, C++ over Python by the medians of the two processes.
std::string to_table(const BackwardComparison& comparison);

/// The table's numbers, and for each round its medians and shortest times, in seconds. Ends with a newline.
std::string to_json(const BackwardComparison& comparison);

}  // namespace plumbline::bench
