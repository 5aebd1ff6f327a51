// Names the halves of a partition as PyTorch's own halves are named.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/partition.h"

namespace plumbline::partition {

struct AnswerNames {
  JointGraphFile::Part forward, backward;
};

/// Nodes keep their names from the joint graph, except random calls that the user tagged to be recomputed and that run
/// in both halves. Our executor replays these (Partition::replayed); PyTorch's `functionalize_rng_ops` writes them into
/// the graphs: the forward calls run_and_save_rng_state, takes its state and result apart and returns the state; the
/// backward takes the state as rng_state_output_N and calls run_with_rng_state. This function produces those names,
/// numbered as torch.fx numbers them.
AnswerNames answer_names(const Partition& partition);

/// The JSON that `plumbline partition --json` prints for a partition with these names: saved, saved_sym, fw, bw.
nlohmann::json answer_json(const Partition& partition);

}  // namespace plumbline::partition
