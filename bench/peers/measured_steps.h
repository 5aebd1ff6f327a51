// What the ranks of one side have measured in a round of the comparison of pipeline steps: the files of
// pipeline_round.h, read. No torch.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/io/tensor_file.h"

namespace plumbline::bench {

/// The file of a rank about a schedule. `suffix`: ".json" or ".safetensors".
std::filesystem::path steps_file(const std::filesystem::path& out, const std::string& schedule, int rank,
                                 const char* suffix);

struct MeasuredSteps {
  std::vector<double> seconds;      ///< by step: of the slowest rank
  std::vector<double> cpu_seconds;  ///< by step: seconds of processor time, summed over all ranks
  TensorMap gradients;              ///< of all ranks, by parameter
};

/// Reads what the ranks of either side wrote about a schedule. Throws Error for missing or invalid files, for ranks
/// with different numbers of steps, and for a parameter with different gradients on two ranks: replicas have the sum
/// over all of them.
MeasuredSteps read_steps(const std::filesystem::path& out, const std::string& schedule, int ranks);

}  // namespace plumbline::bench
