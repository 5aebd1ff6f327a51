#include "bench/proof/llama_shape.h"

#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "conformance/proof/shapes/hollow_memory.h"
#include "reference/loss.h"
#include "reference/models/zoo.h"
#include "runtime/capture/call.h"

namespace plumbline::bench {
namespace {

constexpr double kEpsilon = 1e-5;

class Parameters : public torch::nn::Module {
 protected:
  at::Tensor parameter(const std::string& name, std::vector<int64_t> sizes, at::ScalarType dtype) {
    return register_parameter(name, proof::hollow_tensor(sizes, dtype));
  }
};

class Layer : public Parameters {
 public:
  Layer(const LlamaShape& shape, at::ScalarType dtype) : shape_(shape), head_(shape.width / shape.heads) {
    const int64_t keys = shape.kv_heads * head_;
    attention_norm_ = parameter("attention_norm", {shape.width}, dtype);
    query_ = parameter("wq", {shape.width, shape.width}, dtype);
    key_ = parameter("wk", {keys, shape.width}, dtype);
    value_ = parameter("wv", {keys, shape.width}, dtype);
    out_ = parameter("wo", {shape.width, shape.width}, dtype);
    norm_ = parameter("ffn_norm", {shape.width}, dtype);
    gate_ = parameter("w1", {shape.ffn_width, shape.width}, dtype);
    up_ = parameter("w3", {shape.ffn_width, shape.width}, dtype);
    down_ = parameter("w2", {shape.width, shape.ffn_width}, dtype);
  }

  at::Tensor forward(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines) {
    const at::Tensor normed = norm(x, attention_norm_);
    const at::Tensor query = rotated(heads(at::linear(normed, query_), shape_.heads), cosines, sines);
    const at::Tensor key = rotated(heads(at::linear(normed, key_), shape_.kv_heads), cosines, sines);
    const at::Tensor value = heads(at::linear(normed, value_), shape_.kv_heads);
    const at::Tensor mixed = at::scaled_dot_product_attention(query, key, value, /*attn_mask=*/{}, /*dropout_p=*/0.0,
                                                              /*is_causal=*/true, /*scale=*/{}, /*enable_gqa=*/true);
    const at::Tensor h = at::add(x, at::linear(mixed.transpose(1, 2).flatten(2), out_));
    const at::Tensor in = norm(h, norm_);
    return at::add(h, at::linear(at::mul(at::silu(at::linear(in, gate_)), at::linear(in, up_)), down_));
  }

 private:
  at::Tensor norm(const at::Tensor& x, const at::Tensor& weight) const {
    return at::rms_norm(x, {shape_.width}, weight, kEpsilon);
  }
  at::Tensor heads(const at::Tensor& x, int64_t count) const {
    return x.view({x.size(0), x.size(1), count, head_}).transpose(1, 2);
  }
  at::Tensor rotated(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines) const {
    const at::Tensor turned = at::cat({at::neg(x.slice(3, head_ / 2)), x.slice(3, 0, head_ / 2)}, 3);
    return at::add(at::mul(x, cosines), at::mul(turned, sines));
  }

  LlamaShape shape_;
  int64_t head_;
  at::Tensor attention_norm_, query_, key_, value_, out_, norm_, gate_, up_, down_;
};

class Llama : public Parameters {
 public:
  Llama(const LlamaShape& shape, at::ScalarType dtype) : width_(shape.width) {
    embedding_ = parameter("embedding", {shape.vocabulary, shape.width}, dtype);
    for (int64_t i = 0; i < shape.layers; ++i)
      layers_.push_back(register_module("layer" + std::to_string(i), std::make_shared<Layer>(shape, dtype)));
    norm_ = parameter("norm", {shape.width}, dtype);
    output_ = parameter("output", {shape.vocabulary, shape.width}, dtype);
  }

  at::Tensor forward(const at::Tensor& tokens, const at::Tensor& cosines, const at::Tensor& sines) {
    at::Tensor x = at::embedding(embedding_, tokens);
    for (const std::shared_ptr<Layer>& layer : layers_) x = capture::call(layer, x, cosines, sines);
    return at::linear(at::rms_norm(x, {width_}, norm_, kEpsilon), output_);
  }

 private:
  int64_t width_;
  std::vector<std::shared_ptr<Layer>> layers_;
  at::Tensor embedding_, norm_, output_;
};

}  // namespace

void add_llama(const std::string& name, const LlamaShape& shape) {
  const auto make_model = [shape](reference::Dtype dtype, uint64_t) {
    const auto module = std::make_shared<Llama>(shape, reference::scalar_type(dtype));
    models::Model model;
    model.module = module;
    model.forward = [module](const std::vector<at::Tensor>& in) {
      return std::vector<at::Tensor>{capture::call(module, in[0], in[1], in[2])};
    };
    model.input_names = {"tokens", "cosines", "sines"};
    model.input_chunks = {{}, {.replicate = true}, {.replicate = true}};
    for (int64_t i = 1; i < shape.layers; ++i) model.split_points.push_back("layer" + std::to_string(i));
    return model;
  };
  const auto make_batch = [shape](reference::Dtype dtype, int rows, uint64_t, int) {
    const std::vector<int64_t> angles = {shape.sequence_length, shape.width / shape.heads};
    const std::vector<int64_t> places = {rows, shape.sequence_length};
    const at::ScalarType type = reference::scalar_type(dtype);
    return models::Batch{.inputs = {proof::hollow_tensor(places, at::kLong), proof::hollow_tensor(angles, type),
                                    proof::hollow_tensor(angles, type)},
                         .targets = proof::hollow_tensor(places, at::kLong)};
  };
  models::add_model(name, make_model, make_batch);
}

int64_t parameter_count(const LlamaShape& shape) {
  const int64_t keys = shape.kv_heads * (shape.width / shape.heads);
  const int64_t attention = 2 * shape.width * (shape.width + keys), perceptron = 3 * shape.width * shape.ffn_width;
  return shape.layers * (attention + perceptron + 2 * shape.width) + (2 * shape.vocabulary + 1) * shape.width;
}

}  // namespace plumbline::bench
