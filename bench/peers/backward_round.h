// One round of the comparison with Python: the same work in one fresh process per side, with the same arguments.
//
//   SIDE --threads N --seconds S --out TIMES.json MODEL...
//   SIDE --threads N --gradients full|split --out GRADIENTS.safetensors MODEL...
//
// SIDE is `plumbline-bench peers backward-round` or `PYTHON split_backward.py`. A model is warmed up with one pair,
// then measured for at least S seconds and five pairs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/micro/backward_times.h"

namespace plumbline::bench {

struct BackwardRound {
  std::string torch;                 ///< version of the library that computed
  std::vector<BackwardTimes> times;  ///< of each model, in the order of the command line
};

/// The C++ side; uses the number of threads set with at::set_num_threads().
BackwardRound measure_round(const std::vector<BackwardModel>& models, double seconds);

/// The gradients of all `models`, by the full backward or by its halves.
TensorMap compute_gradients(const std::vector<BackwardModel>& models, bool halves);

std::string to_json(const BackwardRound& round);

/// Reads the output of to_json() or split_backward.py. Throws Error for anything else.
BackwardRound read_round(const std::filesystem::path& path);

}  // namespace plumbline::bench
