// Models for the comparison of a stage's full backward with its two halves (input, then weight), in C++ and in Python.
// bench/peers/split_backward.py builds the same models with the same operators and numbers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/backward/split/split_backward.h"
#include "runtime/io/tensor_file.h"

namespace plumbline::bench {

/// Either an MLP on [rows * length, width]: `layers` linear layers of width x width with GELU between them. Or a
/// transformer on [rows, length, width]: `layers` pre-norm blocks with causal attention in heads of 64 and a
/// feed-forward part of width 4 * width.
struct BackwardModel {
  bool transformer = false;
  int64_t rows = 0, length = 0, width = 0, layers = 0;
};

/// The text form: rows, length, width and layers, as in "transformer:4,256,512,2" or "mlp:512,1,1024,6".
std::string to_string(const BackwardModel& model);

/// The inverse of to_string(). Throws InputError for any other text (numbers have at most 6 digits and are at least 1)
/// and for a transformer whose width is not a multiple of 64.
BackwardModel parse_backward_model(const std::string& text);

/// The default models: in the two large ones matrix products take nearly all of the time, in the two small ones
/// autograd does; the remaining one lies in between.
const std::vector<BackwardModel>& backward_models();

/// One stage with one micro-batch, for use by one thread at a time. Every element of the parameters, the input and the
/// output's gradient is a float32 computed from its position (see fill() in the .cc file).
class BackwardStage {
 public:
  explicit BackwardStage(const BackwardModel& model);

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
  void add_parameter(const std::string& name, at::IntArrayRef sizes, int64_t exponent, double middle);
  void add_linear(const std::string& name, int64_t in, int64_t out);
  void add_norm(const std::string& name);
  /// Applies parameters_[weight] as the weight and parameters_[weight + 1] as the bias.
  at::Tensor linear(const at::Tensor& x, size_t weight) const;
  at::Tensor norm(const at::Tensor& x, size_t weight) const;
  at::Tensor block(const at::Tensor& x, size_t first) const;

  BackwardModel model_;
  std::vector<std::pair<std::string, at::Tensor>> parameters_;
  at::Tensor x_, root_grad_, output_;
  std::vector<at::Tensor> input_grads_;
  backward::WeightBackward weights_;
};

/// Runs both kinds of backward. Aborts unless the full backward and the two halves give the same gradients, bit for
/// bit.
void check_halves(BackwardStage& stage);

}  // namespace plumbline::bench
