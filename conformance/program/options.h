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
  std::vector<std::string> points;  ///< "layers.4", "layers.4:begin" or "layers.3:end"
  int stages = 0;                   ///< the number of stages, placed by the policy; 0: not given
  /// "flops", "measured-flops", "bytes", "time", or "every:CLASS:N" (which needs no number of stages).
  std::string policy;
  /// "transmit" or "replicate" for all parameters, "NAME=transmit" or "NAME=replicate" for one. The defaults (all are
  /// transmitted) keep the bits of the uncut program: see Route::Chain.
  std::vector<std::string> shared;
  split::Route route = split::Route::Chain;
};

struct ProgramOptions {
  std::filesystem::path program;
  ProgramSplit split;
  std::string schedule = "1f1b";  ///< a name, or a .csv file
  int microbatches = 0;           ///< 0: as many as the inputs hold, or as there are stages
  int ranks = 0;                  ///< 0: as many as the schedule needs for the stages
  bool mpi = false;
  std::filesystem::path inputs;
  std::string loss;
  std::filesystem::path save_results, expect;
  engine::RecomputeOptions recompute;
  engine::RematOptions remat;
  uint64_t seed = 1;
  double timeout_seconds = 60;
};

}  // namespace plumbline::program
