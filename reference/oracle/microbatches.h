// The micro-batches of a batch, and the weight of each in the step, as the oracles define them. Shares no code with
// runtime/microbatch, which the oracles judge.
#pragma once

#include <vector>

#include "reference/case.h"
#include "reference/models/zoo.h"

namespace plumbline::reference {

/// Divides `batch` into `parts` micro-batches as torch.tensor_split does; a replicated or undefined input goes to each.
/// A batch that the user divided has its own parts. If `training`, the floating-point inputs of a micro-batch for which
/// requires_gradients() holds are leaves that require gradients, except in a case with whole_gradients: then they are
/// views of the inputs of `batch`.
std::vector<models::Batch> divide(const Case& c, const models::Model& model, const models::Batch& batch, int parts,
                                  bool training);

/// The batch, its floating-point inputs replaced by detached leaves that require gradients.
models::Batch with_leaves(const models::Batch& batch);

/// The gradient from which the backward of a loss of `chunk` begins: the loss scale. For a mean over the batch it is
/// multiplied by the micro-batch's share of the elements of the mean and by the number of micro-batches. `chunk` may be
/// the whole batch.
double loss_weight(const Case& c, const models::Model& model, const models::Batch& chunk, const models::Batch& batch);

}  // namespace plumbline::reference
