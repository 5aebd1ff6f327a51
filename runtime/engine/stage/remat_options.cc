#include "runtime/engine/stage/remat_options.h"

#include "runtime/error.h"
#include "runtime/partition/parity/partition_mode.h"
#include "runtime/partition/parity/policies/policy_file.h"

namespace plumbline::engine {

std::string to_string(const RematOptions& options) {
  return options.on() ? options.mode + " (" + options.policy + ")" : "none";
}

void check_remat(const RematOptions& options, bool recompute) {
  if (!options.on()) return;
  partition::parse_partition_mode(options.mode);
  partition::load_policy(options.policy);
  if (recompute)
    throw InputError("--remat and --recompute: a stage is either partitioned or run again as a whole; take one");
}

}  // namespace plumbline::engine
