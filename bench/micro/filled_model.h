// Models for comparisons with Python: bench/peers/python/filled_model.py builds the same ones, with the same operators
// on the same numbers.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace plumbline::models {
class Linear;
template <class Child>
class ChildList;
}  // namespace plumbline::models

namespace plumbline::bench {

/// Either an MLP on [rows * length, width]: `layers` linear layers of width x width with GELU between them. Or a
/// transformer on [rows, length, width]: `layers` pre-norm blocks with causal attention in heads of 64 and a
/// feed-forward part of width 4 * width.
struct ModelShape {
  bool transformer = false;
  int64_t rows = 0, length = 0, width = 0, layers = 0;

  /// The sizes of the input and the output for `microbatches` times as many rows.
  std::vector<int64_t> sizes(int64_t microbatches = 1) const;
};

/// The text form: rows, length, width and layers, as in "transformer:4,256,512,2" or "mlp:512,1,1024,6".
std::string to_string(const ModelShape& shape);

/// The inverse of to_string(). Throws InputError for any other text (numbers have at most 6 digits and are at least 1)
/// and for a transformer whose width is not a multiple of 64.
ModelShape parse_model_shape(const std::string& text);

/// The exponent of fill() for inputs, targets and gradients of outputs: with middle 0, values from -2 to 2.
inline constexpr int64_t kActivationExponent = 8;

/// Returns a new float32 tensor on the CPU. Element i, in row-major order, is middle + v / 2^exponent, where v is a
/// whole number in -510..510 that depends on i and on `stream`. That is exact in float32 for the exponents and middles
/// used here, so every language computes the same bits. Stream 0 is for inputs, stream 1 for targets and gradients of
/// outputs; the parameters of a model use the streams from 2.
at::Tensor fill(at::IntArrayRef sizes, int64_t stream, int64_t exponent, double middle);

/// The model, with children "layers.0", "layers.1", ..., which are entered through call(). Every element of a parameter
/// is a float32 computed from its position.
class FilledModel : public torch::nn::Module {
 public:
  explicit FilledModel(const ModelShape& shape);
  ~FilledModel() override;

  at::Tensor forward(at::Tensor x);

 private:
  class Block;
  std::shared_ptr<models::ChildList<models::Linear>> linears_;  ///< of an MLP, else null
  std::shared_ptr<models::ChildList<Block>> blocks_;            ///< of a transformer, else null
};

}  // namespace plumbline::bench
