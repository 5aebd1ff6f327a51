// The gradients of the model's inputs, which a train step adds to the .grad of the tensors that the user gave.
#pragma once

#include <vector>

#include "runtime/microbatch/chunk.h"

namespace plumbline::engine {

/// Moves the .grad of a batch's inputs aside, so that a step sees its own gradients only. Unless add_back() was called,
/// the destructor restores the earlier .grad. Only leaves that require gradients are concerned.
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

/// Inputs given whole that are leaves and require gradients: their micro-batches become leaves, so that a backward does
/// not fill a gradient of the whole batch for each of them.
class WholeInputs {
 public:
  /// `batch` has the pieces of `inputs`, as `specs` divide them.
  WholeInputs(const std::vector<at::Tensor>& inputs, const std::vector<microbatch::ChunkSpec>& specs,
              microbatch::Microbatches& batch);

  /// Joins the gradients of the pieces, and adds them to those of the inputs. A row without a gradient gets zeros, if
  /// another one has one.
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
