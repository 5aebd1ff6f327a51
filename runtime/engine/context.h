// EngineContext: state of one rank's engine that outlives a step and that the engine's parts share.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/engine/offload/host_transfers.h"
#include "runtime/engine/options.h"
#include "runtime/engine/replicas/parameter_copies.h"
#include "runtime/engine/stage/graph_stage.h"
#include "runtime/schedule/schedule.h"
#include "runtime/transport/transport.h"

namespace plumbline::engine {

struct EngineContext {
  transport::Transport& transport;
  schedule::Schedule schedule;
  EngineOptions options;
  std::vector<int> stages;                  ///< this rank's stages, ascending
  std::map<int, split::StageState> states;  ///< by stage; completed by the first plan with all stages
  RandomContext random;
  bool lost_parameters = false;              ///< a step with sharded parameters failed
  std::unique_ptr<HostTransfers> host = {};  ///< made by the first step that offloads; dropped when a step fails

  CopyTags copy_tags() const { return {transport.max_tag(), schedule.stages}; }
  int rank_of(int stage, int microbatch) const { return schedule.rank_of(stage, microbatch); }
  bool is_local(int stage, int microbatch) const { return rank_of(stage, microbatch) == transport.rank(); }
  bool is_last(int stage) const { return stage + 1 == schedule.stages; }
  /// Whether this rank reads the model's inputs, which it may do in stage 0 only.
  bool reads_inputs() const { return !stages.empty() && stages.front() == 0; }
  int replica_of(int microbatch) const {
    return schedule.replica_of_microbatch.empty() ? 0 : schedule.replica_of_microbatch[microbatch];
  }
  /// The index of `stage` in `stages`; `stage` must belong to this rank.
  size_t index_of(int stage) const {
    return static_cast<size_t>(std::lower_bound(stages.begin(), stages.end(), stage) - stages.begin());
  }
};

/// "stage 1, micro-batch 0".
inline std::string place(int stage, int microbatch) {
  return "stage " + std::to_string(stage) + ", micro-batch " + std::to_string(microbatch);
}

}  // namespace plumbline::engine
