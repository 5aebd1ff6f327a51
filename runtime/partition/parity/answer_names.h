// Names the nodes of a partition's forward and backward graphs as PyTorch's partitioner names them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/partition.h"

namespace plumbline::partition {

struct AnswerNames {
  JointGraphFile::Part forward, backward;
};

/// Nodes keep their names from the joint graph, except random calls that the user tagged to be recomputed and that run
/// in both halves. This project's executor replays these calls (Partition::replayed); PyTorch's `functionalize_rng_ops`
/// adds nodes for them: the forward calls run_and_save_rng_state, extracts the state and the result with two getitems
/// and returns the state; the backward takes the state as input rng_state_output_N and calls run_with_rng_state. This
/// function produces those names, numbered as in torch.fx. Part::added stays empty.
AnswerNames answer_names(const Partition& partition);

/// Returns the JSON that `plumbline partition --json` prints, with answer_names(): members saved, saved_sym, fw, bw.
nlohmann::json answer_json(const Partition& partition);

}  // namespace plumbline::partition
