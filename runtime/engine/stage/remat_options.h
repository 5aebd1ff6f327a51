// Rematerialisation: which values a partitioned stage (partitioned_stage.h) saves, and by which rules. No torch.
#pragma once

#include <string>

namespace plumbline::engine {

struct RematOptions {
  std::string mode;                   ///< as parse_partition_mode() takes it; empty: what autograd saves
  std::string policy = "torch-2.15";  ///< as load_policy() takes it

  bool on() const { return !mode.empty(); }
};

/// "none", or "bytes (torch-2.15)".
std::string to_string(const RematOptions& options);
/// Throws InputError for a mode or a policy that does not exist, and for `recompute` beside a mode: a stage is either
/// partitioned or recomputed as a whole.
void check_remat(const RematOptions& options, bool recompute);

}  // namespace plumbline::engine
