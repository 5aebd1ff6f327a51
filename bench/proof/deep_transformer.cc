#include "bench/proof/deep_transformer.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/module.h>

#include <cmath>

#include "reference/models/zoo.h"
#include "runtime/capture/call.h"

namespace plumbline::bench {
namespace {

constexpr int64_t kWidth = 8, kHeads = 2, kTokens = 2;

/// Numbers without a meaning that differ from place to place.
at::Tensor numbers(std::vector<int64_t> sizes, double phase) {
  at::Tensor tensor = at::zeros(sizes);
  float* data = tensor.mutable_data_ptr<float>();
  for (int64_t i = 0; i < tensor.numel(); ++i) data[i] = static_cast<float>(0.3 * std::sin(phase + 1.7 * i));
  return tensor;
}

class Layer : public torch::nn::Module {
 public:
  explicit Layer(int number) {
    const double phase = number;
    const auto linear = [&](const std::string& name, int64_t out, int64_t in, at::Tensor& weight, at::Tensor& bias) {
      weight = register_parameter(name + ".weight", numbers({out, in}, phase + out));
      bias = register_parameter(name + ".bias", numbers({out}, phase + in));
    };
    for (int i = 0; i < 2; ++i) {
      scale_[i] = register_parameter("scale" + std::to_string(i), at::ones({kWidth}));
      shift_[i] = register_parameter("shift" + std::to_string(i), at::zeros({kWidth}));
    }
    linear("qkv", 3 * kWidth, kWidth, qkv_, qkv_bias_);
    linear("out", kWidth, kWidth, out_, out_bias_);
    linear("up", 4 * kWidth, kWidth, up_, up_bias_);
    linear("down", kWidth, 4 * kWidth, down_, down_bias_);
  }

  at::Tensor forward(const at::Tensor& x) {
    const int64_t rows = x.size(0);
    const auto heads = [rows](const at::Tensor& part) {
      return part.view({rows, kTokens, kHeads, kWidth / kHeads}).transpose(1, 2);
    };
    const at::Tensor qkv = at::linear(norm(x, 0), qkv_, qkv_bias_);
    const std::vector<at::Tensor> parts = qkv.split(kWidth, 2);
    const at::Tensor mixed = at::scaled_dot_product_attention(heads(parts[0]), heads(parts[1]), heads(parts[2]));
    const at::Tensor h = x + at::linear(mixed.transpose(1, 2).reshape({rows, kTokens, kWidth}), out_, out_bias_);
    return h + at::linear(at::gelu(at::linear(norm(h, 1), up_, up_bias_)), down_, down_bias_);
  }

 private:
  at::Tensor norm(const at::Tensor& x, int i) const { return at::layer_norm(x, {kWidth}, scale_[i], shift_[i]); }

  at::Tensor scale_[2], shift_[2], qkv_, qkv_bias_, out_, out_bias_, up_, up_bias_, down_, down_bias_;
};

class DeepTransformer : public torch::nn::Module {
 public:
  explicit DeepTransformer(int layers) {
    for (int i = 0; i < layers; ++i)
      layers_.push_back(register_module("layer" + std::to_string(i), std::make_shared<Layer>(i)));
  }
  at::Tensor forward(at::Tensor x) {
    for (const std::shared_ptr<Layer>& layer : layers_) x = capture::call(layer, x);
    return x;
  }

 private:
  std::vector<std::shared_ptr<Layer>> layers_;
};

}  // namespace

void add_deep_transformer(const std::string& name, int layers) {
  models::add_model(
      name,
      [layers](reference::Dtype, uint64_t) {
        const auto module = std::make_shared<DeepTransformer>(layers);
        models::Model model;
        model.module = module;
        model.forward = [module](const std::vector<at::Tensor>& in) {
          return std::vector<at::Tensor>{capture::call(module, in[0])};
        };
        model.input_names = {"x"};
        model.input_chunks.resize(1);
        for (int i = 1; i < layers; ++i) model.split_points.push_back("layer" + std::to_string(i));
        return model;
      },
      [](reference::Dtype, int rows, uint64_t seed, int step) {
        return models::Batch{.inputs = {numbers({rows, kTokens, kWidth}, static_cast<double>(seed) + step)},
                             .target = {}};
      });
}

}  // namespace plumbline::bench
