// One round of the comparison with Python: each side does the same work in a fresh process, with the same arguments.
//
//   SIDE --threads N --seconds S --out TIMES.json MODEL...
//   SIDE --threads N --gradients full|split --out GRADIENTS.safetensors MODEL...
//
// SIDE is `plumbline-bench peers backward-round` or `PYTHON split_backward.py`. Each model is warmed up with one pair
// (backward_times.h), then measured for at least S seconds and at least five pairs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/micro/backward_times.h"

namespace plumbline::bench {

struct BackwardRound {
  std::string torch;                 ///< version of the library that computed, such as "2.15.0"
  std::vector<BackwardTimes> times;  ///< indexed as the models of the command line
};

/// Measures the C++ side, each model for at least `seconds`, with the number of threads set by at::set_num_threads().
/// Aborts if the halves and the full backward give different gradients.
BackwardRound measure_round(const std::vector<ModelShape>& models, double seconds);

/// The gradients of all `models` (BackwardStage::gradients), by the two halves if `halves`, else by the full backward.
TensorMap compute_gradients(const std::vector<ModelShape>& models, bool halves);

/// The content of TIMES.json: the version and the seconds of every pair. Ends with a newline.
std::string to_json(const BackwardRound& round);

/// Reads a TIMES.json of either side. Throws Error for an unreadable file, invalid content and fewer than five pairs.
BackwardRound read_round(const std::filesystem::path& path);

}  // namespace plumbline::bench
