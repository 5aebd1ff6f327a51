// Stages whose backward is timed whole and in two halves, in C++ and in Python (bench/peers/split_backward.py), with
// the same operators on the same numbers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/backward/split/split_backward.h"
#include "runtime/io/tensor_file.h"

namespace plumbline::bench {

/// An MLP: linear layers of width x width with GELU between them, on rows * length rows. Or a transformer: pre-norm
/// blocks with causal attention in heads of 64 and a feed-forward part of 4 widths, on [rows, length, width].
struct BackwardModel {
  bool transformer = false;
  int64_t rows = 0, length = 0, width = 0, layers = 0;
};

/// "transformer:4,256,512,2", "mlp:512,1,1024,6": rows, length, width, layers.
std::string to_string(const BackwardModel& model);

/// The inverse; throws InputError for any other text, and for a transformer whose width is not a multiple of 64.
BackwardModel parse_backward_model(const std::string& text);

/// Two (the large ones) where matrix products take nearly all of the time, two (the tiny ones) where autograd does, and
/// one between.
const std::vector<BackwardModel>& backward_models();

/// One stage with one micro-batch. Every number is a float32 computed from its position (see fill() in the source).
class BackwardStage {
 public:
  explicit BackwardStage(const BackwardModel& model);

  /// Drops every gradient and recomputes the output.
  void forward();

  /// Each consumes and releases the output of one forward().
  void full_backward();
  void input_backward();
  /// After input_backward().
  void weight_backward();

  /// The gradients of the input and the parameters, under the result keys (reference/result_key.h) that
  /// split_backward.py writes; names are prefixed with the model's.
  TensorMap gradients() const;

 private:
  void add_parameter(const std::string& name, at::IntArrayRef sizes, int64_t exponent, double middle);
  void add_linear(const std::string& name, int64_t in, int64_t out);
  void add_norm(const std::string& name);
  /// Uses the parameters `weight` and `weight` + 1: weight and bias.
  at::Tensor linear(const at::Tensor& x, size_t weight) const;
  at::Tensor norm(const at::Tensor& x, size_t weight) const;
  at::Tensor block(const at::Tensor& x, size_t first) const;

  BackwardModel model_;
  std::vector<std::pair<std::string, at::Tensor>> parameters_;
  at::Tensor x_, root_grad_, output_;
  std::vector<at::Tensor> input_grads_;
  backward::WeightBackward weights_;
};

/// Aborts unless the full backward and the two halves give the same gradients, bit for bit.
void check_halves(BackwardStage& stage);

}  // namespace plumbline::bench
