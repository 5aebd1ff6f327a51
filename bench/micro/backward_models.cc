#include "bench/micro/backward_models.h"

#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <bit>
#include <cmath>
#include <cstdio>

#include "reference/result_key.h"
#include "runtime/backward/stage_backward.h"
#include "runtime/error.h"
#include "runtime/graph/host_tensors.h"

namespace plumbline::bench {
namespace {

constexpr int64_t kHeadWidth = 64;
constexpr size_t kParametersOfLinear = 2, kParametersOfBlock = 12;
constexpr int64_t kSmall = 13, kLarge = 8;  ///< exponents: within 1/16, within 2

/// Element i is middle + v / 2^exponent, where v is a whole number in -510..510 that depends on i and on `stream`:
/// exact in float32, so every language computes the same bits.
at::Tensor fill(at::IntArrayRef sizes, int64_t stream, int64_t exponent, double middle) {
  at::Tensor tensor = at::empty(sizes, at::kFloat);
  float* data = tensor.mutable_data_ptr<float>();
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    const int64_t v = (i * i % 1021 + 2 * ((7919 * i + stream) % 509)) % 1021 - 510;
    data[i] = static_cast<float>(middle + std::ldexp(static_cast<double>(v), -static_cast<int>(exponent)));
  }
  return tensor;
}

}  // namespace

std::string to_string(const BackwardModel& model) {
  std::string text = model.transformer ? "transformer:" : "mlp:";
  for (const int64_t number : {model.rows, model.length, model.width}) text += std::to_string(number) + ",";
  return text + std::to_string(model.layers);
}

BackwardModel parse_backward_model(const std::string& text) {
  BackwardModel model;
  model.transformer = text.starts_with("transformer:");
  const size_t colon = text.find(':');
  if (colon != std::string::npos)
    std::sscanf(text.c_str() + colon, ":%6ld,%6ld,%6ld,%6ld", &model.rows, &model.length, &model.width, &model.layers);
  if (to_string(model) != text || model.rows < 1 || model.length < 1 || model.width < 1 || model.layers < 1)
    throw InputError("'" + text +
                     "' is not a model; expected mlp:ROWS,LENGTH,WIDTH,LAYERS or transformer:..., such as " +
                     to_string(backward_models().back()));
  if (model.transformer && model.width % kHeadWidth != 0)
    throw InputError("'" + text + "': the width of a transformer must be a multiple of " + std::to_string(kHeadWidth));
  return model;
}

const std::vector<BackwardModel>& backward_models() {
  static const std::vector<BackwardModel> models = {{.rows = 512, .length = 1, .width = 1024, .layers = 6},
                                                    {.rows = 64, .length = 1, .width = 64, .layers = 8},
                                                    {true, 2, 64, 64, 2},
                                                    {true, 4, 128, 256, 2},
                                                    {true, 4, 256, 512, 2}};
  return models;
}

BackwardStage::BackwardStage(const BackwardModel& model) : model_(model) {
  const std::vector<int64_t> sizes = model.transformer ? std::vector<int64_t>{model.rows, model.length, model.width}
                                                       : std::vector<int64_t>{model.rows * model.length, model.width};
  x_ = fill(sizes, /*stream=*/0, kLarge, 0).requires_grad_(true);
  root_grad_ = fill(sizes, /*stream=*/1, kLarge, 0);
  for (int64_t i = 0; i < model.layers; ++i) {
    const std::string layer = "layers." + std::to_string(i);
    if (!model.transformer) {
      add_linear(layer, model.width, model.width);
      continue;
    }
    add_norm(layer + ".norm1");
    add_linear(layer + ".qkv", model.width, 3 * model.width);
    add_linear(layer + ".proj", model.width, model.width);
    add_norm(layer + ".norm2");
    add_linear(layer + ".up", model.width, 4 * model.width);
    add_linear(layer + ".down", 4 * model.width, model.width);
  }
}

void BackwardStage::add_parameter(const std::string& name, at::IntArrayRef sizes, int64_t exponent, double middle) {
  const int64_t stream = 2 + static_cast<int64_t>(parameters_.size());
  parameters_.emplace_back(name, fill(sizes, stream, exponent, middle).requires_grad_(true));
}

void BackwardStage::add_linear(const std::string& name, int64_t in, int64_t out) {
  // weights have a magnitude of about 1 / sqrt(in)
  const int64_t exponent = kLarge + (std::bit_width(static_cast<uint64_t>(in)) - 1) / 2;
  add_parameter(name + ".weight", {out, in}, exponent, 0);
  add_parameter(name + ".bias", {out}, kSmall, 0);
}

void BackwardStage::add_norm(const std::string& name) {
  add_parameter(name + ".weight", {model_.width}, kSmall, 1);
  add_parameter(name + ".bias", {model_.width}, kSmall, 0);
}

at::Tensor BackwardStage::linear(const at::Tensor& x, size_t weight) const {
  return at::linear(x, parameters_[weight].second, parameters_[weight + 1].second);
}

at::Tensor BackwardStage::norm(const at::Tensor& x, size_t weight) const {
  return at::layer_norm(x, {model_.width}, parameters_[weight].second, parameters_[weight + 1].second);
}

at::Tensor BackwardStage::block(const at::Tensor& x, size_t first) const {
  const auto [rows, length, width] = std::array{model_.rows, model_.length, model_.width};
  std::vector<at::Tensor> qkv = linear(norm(x, first), first + 2).chunk(3, /*dim=*/2);
  for (at::Tensor& part : qkv) part = part.view({rows, length, width / kHeadWidth, kHeadWidth}).transpose(1, 2);
  const at::Tensor mixed = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], /*attn_mask=*/{},
                                                            /*dropout_p=*/0.0, /*is_causal=*/true);
  const at::Tensor h = at::add(x, linear(mixed.transpose(1, 2).reshape({rows, length, width}), first + 4));
  return at::add(h, linear(at::gelu(linear(norm(h, first + 6), first + 8)), first + 10));
}

void BackwardStage::forward() {
  for (auto& [name, parameter] : parameters_) parameter.mutable_grad() = at::Tensor();
  x_.mutable_grad() = at::Tensor();
  input_grads_.clear();
  at::Tensor h = x_;
  for (size_t i = 0; i < parameters_.size(); i += model_.transformer ? kParametersOfBlock : kParametersOfLinear) {
    if (!model_.transformer && i > 0) h = at::gelu(h);
    h = model_.transformer ? block(h, i) : linear(h, i);
  }
  output_ = std::move(h);
}

void BackwardStage::full_backward() {
  backward::stage_backward({&output_, 1}, {&root_grad_, 1}, {&x_, 1}, input_grads_);
  output_ = at::Tensor();
}

void BackwardStage::input_backward() {
  backward::stage_backward_input({&output_, 1}, {&root_grad_, 1}, {&x_, 1}, input_grads_, weights_);
  output_ = at::Tensor();
}

void BackwardStage::weight_backward() { backward::stage_backward_weight(weights_); }

TensorMap BackwardStage::gradients() const {
  const std::string model = to_string(model_) + ".";
  TensorMap map;
  const reference::ResultKey input{
      .kind = reference::ResultKind::Backward, .stage = 0, .microbatch = 0, .name = model + "x"};
  map.emplace(to_string(input), graph::to_host(input_grads_.at(0)));
  for (const auto& [name, parameter] : parameters_)
    map.emplace(to_string(reference::ResultKey{.kind = reference::ResultKind::Grad, .name = model + name}),
                graph::to_host(parameter.grad()));
  return map;
}

void check_halves(BackwardStage& stage) {
  stage.forward();
  stage.full_backward();
  const TensorMap whole = stage.gradients();
  stage.forward();
  stage.input_backward();
  stage.weight_backward();
  PLUMBLINE_CHECK(stage.gradients() == whole, "the two halves give different gradients than the full backward");
}

}  // namespace plumbline::bench
