// Divides the inputs and the targets of a step among its micro-batches, and joins the outputs of the micro-batches.
//
// A dimension of n rows becomes m chunks as with torch.tensor_split: the first n % m chunks have one row more. Chunks
// are views: no data is copied.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "runtime/microbatch/chunk_spec.h"
#include "runtime/microbatch/targets.h"

namespace plumbline::microbatch {

/// Returns positional and keyword inputs in the model's order. `names` are the parameters of its forward, among which
/// may be "*rest" and "**extra". An undefined tensor in `keyword` is given as None; in `positional` it counts as
/// missing, except within "*rest". Throws InputError for a missing or unknown input and an input that is given twice;
/// see Signature::bind().
std::vector<at::Tensor> bind_inputs(const std::vector<std::string>& names, const std::vector<at::Tensor>& positional,
                                    const std::map<std::string, at::Tensor>& keyword = {});

/// Returns [micro-batch][input]. An undefined input is None in each micro-batch, whatever its spec. Throws InputError
/// if `microbatches` is below 1, if names, inputs and specs differ in number, or if no input is defined although there
/// are inputs; and, naming the input, if its dimension does not exist, if it has fewer rows than there are
/// micro-batches, or if two divided inputs have different numbers of rows that are not both multiples of
/// `microbatches`.
std::vector<std::vector<at::Tensor>> split_inputs(const std::vector<std::string>& names,
                                                  const std::vector<at::Tensor>& inputs,
                                                  const std::vector<ChunkSpec>& specs, int microbatches);

/// A batch that is already divided.
struct Microbatches {
  std::vector<std::vector<at::Tensor>> inputs;  ///< [micro-batch][input]
  std::vector<Targets> targets;                 ///< [micro-batch]; empty, or all empty, without a target
};

/// Throws InputError unless `batch` has `microbatches` micro-batches, each with as many inputs as `names`; each input
/// is defined in all micro-batches or in none; and all micro-batches have the same number of targets.
void check_microbatches(const std::vector<std::string>& names, const Microbatches& batch, int microbatches);

/// Returns the targets of each micro-batch, all divided as in `spec`. Throws InputError if `microbatches` is below 1;
/// and, naming the target, if its dimension does not exist, if it has fewer rows than there are micro-batches, or if
/// two targets have different numbers of rows that are not both multiples of `microbatches`.
std::vector<Targets> split_targets(const Targets& targets, int microbatches, const ChunkSpec& spec = {});

/// Joins [micro-batch][output] along the dimension of each output's spec (dimension 0 without a spec). A replicated
/// output must be equal in all micro-batches, a NaN to a NaN. An output that is undefined (None) in all of them stays
/// undefined. Throws InputError if two micro-batches differ in their number of outputs; and, naming the output, if it
/// is undefined in some micro-batches only, for a dimension that does not exist or a replicated output that differs.
std::vector<at::Tensor> merge_outputs(const std::vector<std::vector<at::Tensor>>& outputs,
                                      const std::vector<ChunkSpec>& specs);

/// Returns the number of rows of each of the `microbatches` chunks of `rows` rows.
std::vector<int64_t> chunk_rows(int64_t rows, int microbatches);

/// Returns the weight of each micro-batch's mean loss, given its divisor (the rows of the chunk, or its elements that
/// count): divisor x number of chunks / sum of the divisors. The average of the weighted losses is then the mean over
/// the whole batch, even for uneven chunks. All weights are 1 for even chunks.
std::vector<double> mean_loss_weights(const std::vector<double>& divisors);

}  // namespace plumbline::microbatch
