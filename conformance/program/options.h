// The options of `plumbline run --program` and `plumbline split`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/engine/stage/remat_options.h"
#include "runtime/engine/stage/stage_blocks.h"
#include "runtime/split/split.h"

namespace plumbline::program {

/// How a program is cut.
struct ProgramSplit {
  /// Cuts before or after modules: "layers.4" (the same as "layers.4:begin") or "layers.3:end". Excludes `stages`
  /// and `policy`.
  std::vector<std::string> points;
  int stages = 0;  ///< the number of stages into which `policy` cuts; 0: not given
  /// "flops", "measured-flops", "bytes", "time", or "every:CLASS:N", which determines the number of stages. Empty:
  /// "flops".
  std::string policy;
  /// For parameters that several stages use: "transmit" or "replicate" for all, "NAME=transmit" or "NAME=replicate" for
  /// one. With the defaults (all are transmitted, Route::Chain) results have the bits of the uncut program.
  std::vector<std::string> shared;
  split::Route route = split::Route::Chain;
};

struct ProgramOptions {
  std::filesystem::path program;  ///< the exported archive
  ProgramSplit split;
  std::string schedule = "1f1b";  ///< a name, or the path of a .csv file
  int microbatches = 0;           ///< 0: the number in the .csv file, else as many as `inputs` has, else one per stage
  int ranks = 0;                  ///< 0: as many as the schedule needs for the stages
  bool mpi = false;               ///< ranks are processes, not threads
  std::vector<std::string> launcher;  ///< that starts processes: words with a place {np}
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
