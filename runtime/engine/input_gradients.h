// The gradients of the model's inputs, which a train step adds to the .grad of the tensors that the user gave.
#pragma once

#include <string>
#include <vector>

#include "runtime/engine/gradients.h"
#include "runtime/microbatch/chunk.h"

namespace plumbline::engine {

/// Adds to `stash` the inputs of a batch that are leaves and require gradients. `names`, one for each input, must
/// outlive it.
void stash_inputs(const std::vector<std::string>& names, const microbatch::Microbatches& batch, GradientStash& stash);

/// The inputs of a step that were given undivided, are leaves and require gradients. During the step each micro-batch
/// has a leaf of its own in place of its slice; otherwise the backward of every micro-batch would allocate a gradient
/// of the size of the whole input. Replicated inputs are excluded: every micro-batch has the input itself.
class WholeInputs {
 public:
  /// `batch` must have the slices of `inputs` as `specs` divide them; `specs` has one entry per input. Replaces the
  /// slices of the inputs above in `batch` by detached leaves, which share the memory of the input and require
  /// gradients. Keeps references to these leaves and to the inputs.
  WholeInputs(const std::vector<at::Tensor>& inputs, const std::vector<microbatch::ChunkSpec>& specs,
              microbatch::Microbatches& batch);

  /// Adds the inputs to `stash`. `names`, one for each input, must outlive it.
  void stash_inputs(const std::vector<std::string>& names, GradientStash& stash) const;

  /// Call once, after the step and before GradientStash::add_back(). Joins the gradients of an input's slices along the
  /// divided dimension, with zeros for a slice without one, and adds the result to the .grad of the input, which it
  /// becomes if there is none. The .grad of an input is unchanged if no slice has a gradient.
  void join_gradients() const;

 private:
  struct Whole {
    size_t index;  // of the input
    at::Tensor leaf;
    int dim;
    std::vector<at::Tensor> pieces;
  };
  std::vector<Whole> wholes_;
};

}  // namespace plumbline::engine
