// The first oracle: the whole model, never captured or cut, under plain autograd. It shares only the model and the
// seeds of random layers with the runtime: torch.tensor_split makes micro-batches, this file weights the losses, and
// autograd does the rest.
#pragma once

#include <optional>

#include "reference/case.h"
#include "reference/results.h"

namespace plumbline::reference {

struct WholeModelOptions {
  /// Runs micro-batches in ascending order, accumulating gradients; otherwise the whole batch at once (one forward, one
  /// backward), except in a case with LossSpec::equal_weights or Case::divided.
  bool by_microbatch = true;
  /// Runs in this precision instead of that of the case (float64 for bounded truth): converts floating-point
  /// parameters, buffers, inputs and targets.
  std::optional<Dtype> dtype;
  /// The number of stages whose seeds random layers use: at each split point the generator gets the seed of the stage
  /// that begins there. 1: seeds only at the start of forward.
  int stages = 1;
  /// Replaces parameters, inputs and targets by their absolute values (targets negated), for the proof of exactness.
  bool absolute_values = false;
};

/// Records output, loss and the input-grad of a micro-batch (by_microbatch only), the input-grad of a batch, and what
/// run_case() records; no result of a stage. If !keeps_details(c), only those that keeps_details() names. Throws
/// InputError as make_model(), make_batch() and stage_points() do.
Results run_whole_model(const Case& c, uint64_t seed, const WholeModelOptions& options = {});

}  // namespace plumbline::reference
