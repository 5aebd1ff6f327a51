// Divides the inputs and the target of a step among its micro-batches, and joins the outputs.
//
// A dimension of n rows becomes m chunks as torch.tensor_split does it: the first n % m have one row more. Chunks are
// views: no data is copied.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "runtime/microbatch/chunk_spec.h"

namespace plumbline::microbatch {

/// Positional and keyword inputs in the model's order; `names` may hold "*rest" and "**extra". Throws InputError naming
/// a missing, unknown or doubled input; see Signature::bind(). An undefined tensor in `keyword` is not missing: it is
/// None.
std::vector<at::Tensor> bind_inputs(const std::vector<std::string>& names, const std::vector<at::Tensor>& positional,
                                    const std::map<std::string, at::Tensor>& keyword = {});

/// [micro-batch][input]. An undefined input is None in each micro-batch, whatever its spec; at least one must be
/// defined. Throws InputError naming the input when a spec is missing, its dimension does not exist, it has fewer rows
/// than micro-batches, or two divided inputs have different numbers of rows that do not divide evenly.
std::vector<std::vector<at::Tensor>> split_inputs(const std::vector<std::string>& names,
                                                  const std::vector<at::Tensor>& inputs,
                                                  const std::vector<ChunkSpec>& specs, int microbatches);

/// A batch that is already divided.
struct Microbatches {
  std::vector<std::vector<at::Tensor>> inputs;  ///< [micro-batch][input]
  std::vector<at::Tensor> targets;              ///< one for each micro-batch; none, or all undefined, without a target
};

/// Throws InputError, naming the micro-batch, unless `batch` has `microbatches` micro-batches with as many inputs as
/// `names`, each defined in all or in none of them, and a target for each micro-batch or for none.
void check_microbatches(const std::vector<std::string>& names, const Microbatches& batch, int microbatches);

/// One target per micro-batch, divided as `spec` says; all undefined for an undefined target. Throws InputError as
/// above.
std::vector<at::Tensor> split_target(const at::Tensor& target, int microbatches, const ChunkSpec& spec = {});

/// Joins [micro-batch][output] along each spec's dimension; a replicated output must be equal in all micro-batches. An
/// undefined (None) output stays undefined. Throws InputError naming the output that cannot be joined.
std::vector<at::Tensor> merge_outputs(const std::vector<std::vector<at::Tensor>>& outputs,
                                      const std::vector<ChunkSpec>& specs);

/// The rows of each of `microbatches` chunks of `rows`.
std::vector<int64_t> chunk_rows(int64_t rows, int microbatches);

/// The weight of each micro-batch's mean loss, given the rows of each, so that the average is the mean over the whole
/// batch however uneven the chunks: rows of the chunk x number of chunks / rows of the batch. All 1 for even chunks.
std::vector<double> mean_loss_weights(const std::vector<int64_t>& rows);

}  // namespace plumbline::microbatch
