// How `plumbline run --program`, `plumbline split` and `plumbline partition` cut a program.
#pragma once

#include <string>
#include <vector>

#include "runtime/split/cut/split_options.h"

namespace plumbline::program {

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

}  // namespace plumbline::program
