// A stage for the comparison of its full backward with its two halves (input, then weight), in C++ and in Python.
// bench/peers/python/split_backward.py does the same with the same model.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "bench/micro/filled_model.h"
#include "runtime/backward/split/split_backward.h"
#include "runtime/io/tensor_file.h"

namespace plumbline::bench {

/// The default models: in the two large ones matrix products take nearly all of the time, in the two small ones
/// autograd does; the remaining one lies in between.
const std::vector<ModelShape>& backward_models();

/// One stage with one micro-batch, for use by one thread at a time. Parameters, input and the output's gradient are
/// those of fill().
class BackwardStage {
 public:
  explicit BackwardStage(const ModelShape& model);

  /// Drops all gradients and computes the output anew.
  void forward();

  /// Computes all gradients of the last forward() and releases its output. A forward() allows either one
  /// full_backward(), or one input_backward() and then one weight_backward().
  void full_backward();
  /// Computes the gradient of the input and releases the output; keeps the state that weight_backward() needs.
  void input_backward();
  /// Computes the gradients of the parameters; requires input_backward().
  void weight_backward();

  /// Copies of the gradients of the input and the parameters, keyed as in split_backward.py: the text of a ResultKey
  /// (reference/result_key.h) whose name begins with to_string(model) and a dot. Requires a complete backward.
  TensorMap gradients() const;

 private:
  ModelShape model_;
  std::shared_ptr<FilledModel> module_;
  at::Tensor x_, root_grad_, output_;
  std::vector<at::Tensor> input_grads_;
  backward::WeightBackward weights_;
};

/// Runs both kinds of backward. Aborts unless the full backward and the two halves give the same gradients, bit for
/// bit.
void check_halves(BackwardStage& stage);

}  // namespace plumbline::bench
