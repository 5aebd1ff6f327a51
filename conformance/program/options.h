// The options of `plumbline run --program`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "conformance/program/program_split.h"
#include "runtime/engine/stage/recompute_options.h"
#include "runtime/engine/stage/remat_options.h"

namespace plumbline::program {

struct ProgramOptions {
  std::filesystem::path program;  ///< the exported archive
  ProgramSplit split;
  std::string schedule = "1f1b";  ///< a name, or the path of a .csv file
  int microbatches = 0;           ///< 0: the number in the .csv file, else as many as `inputs` has, else one per stage
  int ranks = 0;                  ///< 0: as many as the schedule needs for the stages
  bool mpi = false;               ///< ranks are processes, not threads
  std::string device = "cpu";     ///< where the ranks compute; or "cuda"
  std::vector<std::string> launcher;  ///< the command that starts processes, with {np} for their number
  std::filesystem::path inputs;       ///< a file with the batch; empty: the sample inputs, varied (batch.h)
  std::string loss;                   ///< as choose_loss() accepts it; empty: inferred
  /// The folder for results.safetensors, and a file with the expected results. Empty: not saved, not compared.
  std::filesystem::path save_results, expect;
  engine::RecomputeOptions recompute;
  engine::RematOptions remat;
  uint64_t seed = 1;            ///< of varied sample inputs and of random layers
  double timeout_seconds = 60;  ///< the longest wait for a message
};

}  // namespace plumbline::program
