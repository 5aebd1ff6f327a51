#include "bench/micro/filled_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>

#include <bit>
#include <cmath>
#include <cstdio>

#include "reference/models/parts/layers.h"
#include "runtime/capture/call.h"
#include "runtime/error.h"

namespace plumbline::bench {
namespace {

constexpr int64_t kHeadWidth = 64;
constexpr int64_t kSmall = 13;  ///< an exponent of fill(): within 1/16

class Norm : public torch::nn::Module {
 public:
  explicit Norm(int64_t width)
      : weight_(register_parameter("weight", at::zeros({width}))),
        bias_(register_parameter("bias", at::zeros({width}))) {}
  at::Tensor forward(const at::Tensor& x) { return at::layer_norm(x, weight_.sizes(), weight_, bias_); }

 private:
  at::Tensor weight_, bias_;
};

}  // namespace

/// The children are registered in the order of their parameters' streams.
class FilledModel::Block : public torch::nn::Module {
 public:
  explicit Block(int64_t width)
      : norm1_(register_module("norm1", std::make_shared<Norm>(width))),
        qkv_(register_module("qkv", std::make_shared<models::Linear>(width, 3 * width))),
        proj_(register_module("proj", std::make_shared<models::Linear>(width, width))),
        norm2_(register_module("norm2", std::make_shared<Norm>(width))),
        up_(register_module("up", std::make_shared<models::Linear>(width, 4 * width))),
        down_(register_module("down", std::make_shared<models::Linear>(4 * width, width))) {}

  at::Tensor forward(const at::Tensor& x) {
    const int64_t rows = x.size(0), length = x.size(1), width = x.size(2);
    std::vector<at::Tensor> qkv = capture::call(qkv_, capture::call(norm1_, x)).chunk(3, /*dim=*/2);
    for (at::Tensor& part : qkv) part = part.view({rows, length, width / kHeadWidth, kHeadWidth}).transpose(1, 2);
    const at::Tensor mixed = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], /*attn_mask=*/{},
                                                              /*dropout_p=*/0.0, /*is_causal=*/true);
    const at::Tensor h = at::add(x, capture::call(proj_, mixed.transpose(1, 2).reshape({rows, length, width})));
    return at::add(h, capture::call(down_, at::gelu(capture::call(up_, capture::call(norm2_, h)))));
  }

 private:
  std::shared_ptr<Norm> norm1_;
  std::shared_ptr<models::Linear> qkv_, proj_;
  std::shared_ptr<Norm> norm2_;
  std::shared_ptr<models::Linear> up_, down_;
};

at::Tensor fill(at::IntArrayRef sizes, int64_t stream, int64_t exponent, double middle) {
  at::Tensor tensor = at::empty(sizes, at::kFloat);
  float* data = tensor.mutable_data_ptr<float>();
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    const int64_t v = (i * i % 1021 + 2 * ((7919 * i + stream) % 509)) % 1021 - 510;
    data[i] = static_cast<float>(middle + std::ldexp(static_cast<double>(v), -static_cast<int>(exponent)));
  }
  return tensor;
}

std::vector<int64_t> ModelShape::sizes(int64_t microbatches) const {
  if (transformer) return {microbatches * rows, length, width};
  return {microbatches * rows * length, width};
}

std::string to_string(const ModelShape& shape) {
  std::string text = shape.transformer ? "transformer:" : "mlp:";
  for (const int64_t number : {shape.rows, shape.length, shape.width}) text += std::to_string(number) + ",";
  return text + std::to_string(shape.layers);
}

ModelShape parse_model_shape(const std::string& text) {
  ModelShape shape;
  shape.transformer = text.starts_with("transformer:");
  const size_t colon = text.find(':');
  if (colon != std::string::npos)
    std::sscanf(text.c_str() + colon, ":%6ld,%6ld,%6ld,%6ld", &shape.rows, &shape.length, &shape.width, &shape.layers);
  if (to_string(shape) != text || shape.rows < 1 || shape.length < 1 || shape.width < 1 || shape.layers < 1)
    throw InputError("'" + text +
                     "' is not a model; expected mlp:ROWS,LENGTH,WIDTH,LAYERS or transformer:..., such as "
                     "transformer:4,256,512,2");
  if (shape.transformer && shape.width % kHeadWidth != 0)
    throw InputError("'" + text + "': the width of a transformer must be a multiple of " + std::to_string(kHeadWidth));
  return shape;
}

FilledModel::FilledModel(const ModelShape& shape) {
  if (shape.transformer)
    blocks_ = register_module("layers", std::make_shared<models::ChildList<Block>>());
  else
    linears_ = register_module("layers", std::make_shared<models::ChildList<models::Linear>>());
  for (int64_t i = 0; i < shape.layers; ++i) {
    if (blocks_)
      blocks_->add(shape.width);
    else
      linears_->add(shape.width, shape.width);
  }
  const at::NoGradGuard no_grad;
  int64_t stream = 2;
  for (const auto& item : named_parameters()) {
    const at::Tensor& parameter = item.value();
    const bool matrix = parameter.dim() == 2, bias = item.key().ends_with("bias");
    // a matrix has a magnitude of about 1 / sqrt(inputs)
    const int64_t exponent =
        matrix ? kActivationExponent + (std::bit_width(static_cast<uint64_t>(parameter.size(1))) - 1) / 2 : kSmall;
    parameter.copy_(fill(parameter.sizes(), stream++, exponent, /*middle=*/matrix || bias ? 0 : 1));
  }
}

FilledModel::~FilledModel() = default;

at::Tensor FilledModel::forward(at::Tensor x) {
  if (blocks_) {
    for (std::shared_ptr<Block>& block : blocks_->all()) x = capture::call(block, x);
    return x;
  }
  for (std::shared_ptr<models::Linear>& linear : linears_->all())
    x = capture::call(linear, linear == linears_->all().front() ? x : at::gelu(x));
  return x;
}

}  // namespace plumbline::bench
