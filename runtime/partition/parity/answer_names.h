// The halves of a partition by the names that PyTorch's own halves have.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/partition.h"

namespace plumbline::partition {

struct AnswerNames {
  JointGraphFile::Part forward, backward;
};

/// Nodes are named as in the joint graph, but for random calls that the user has tagged to be recomputed and that run
/// in both halves. Ours are replayed by the executor (Partition::replayed). PyTorch's `functionalize_rng_ops` writes
/// them into the graphs: the forward calls run_and_save_rng_state, takes its state and its result apart and returns the
/// state; the backward takes the state as rng_state_output_N and calls run_with_rng_state. Those names are given here,
/// numbered as torch.fx numbers them.
AnswerNames answer_names(const Partition& partition);

/// What `plumbline partition --json` prints of a partition by these names: saved, saved_sym, fw, bw.
nlohmann::json answer_json(const Partition& partition);

}  // namespace plumbline::partition
