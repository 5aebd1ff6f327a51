// The gradients of the model's inputs, which a train step adds to the .grad of the tensors that the user gave.
#pragma once

#include <vector>

#include "runtime/microbatch/chunk.h"

namespace plumbline::engine {

/// Moves the .grad of a batch's inputs aside, so that a step sees its own gradients only. Unless add_back() was called,
/// the destructor restores the earlier .grad, undefined if there was none. Only leaves that require gradients are
/// concerned.
class InputStash {
 public:
  explicit InputStash(const microbatch::Microbatches& batch);
  ~InputStash();
  InputStash(const InputStash&) = delete;
  InputStash& operator=(const InputStash&) = delete;

  /// Adds the earlier gradients to those of the step. Call once.
  void add_back();

 private:
  struct Entry {
    at::Tensor leaf, before;
  };
  std::vector<Entry> entries_;
};

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

  /// Call once, after the step. Joins the gradients of an input's slices along the divided dimension, with zeros for a
  /// slice without one, and adds the result to the .grad of the input, which it becomes if there is none. The .grad of
  /// an input is unchanged if no slice has a gradient.
  void add_gradients() const;

 private:
  struct Whole {
    at::Tensor leaf;
    int dim = 0;
    std::vector<at::Tensor> pieces;
  };
  std::vector<Whole> wholes_;
};

}  // namespace plumbline::engine
