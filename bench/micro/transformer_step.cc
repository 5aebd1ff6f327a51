#include "bench/micro/transformer_step.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>

#include "reference/models/parts/layers.h"
#include "reference/models/parts/parameters.h"
#include "runtime/capture/call.h"
#include "runtime/capture/capture.h"
#include "runtime/error.h"

namespace plumbline::bench {
namespace {

constexpr int64_t kWidth = 32, kHeads = 4, kLength = 8, kVocabulary = 64;
constexpr int kBlocks = 4;

using models::ChildList;
using models::Embedding;
using models::Linear;

class LayerNorm : public torch::nn::Module {
 public:
  LayerNorm()
      : weight_(register_parameter("weight", at::ones({kWidth}))),
        bias_(register_parameter("bias", at::zeros({kWidth}))) {}
  at::Tensor forward(const at::Tensor& x) { return at::layer_norm(x, {kWidth}, weight_, bias_); }

 private:
  at::Tensor weight_, bias_;
};

class Block : public torch::nn::Module {
 public:
  Block()
      : norm1_(register_module("norm1", std::make_shared<LayerNorm>())),
        norm2_(register_module("norm2", std::make_shared<LayerNorm>())),
        qkv_(register_module("qkv", std::make_shared<Linear>(kWidth, 3 * kWidth))),
        proj_(register_module("proj", std::make_shared<Linear>(kWidth, kWidth))),
        up_(register_module("up", std::make_shared<Linear>(kWidth, 4 * kWidth))),
        down_(register_module("down", std::make_shared<Linear>(4 * kWidth, kWidth))) {}

  at::Tensor forward(const at::Tensor& x) {
    const int64_t rows = x.size(0), length = x.size(1);
    std::vector<at::Tensor> qkv = capture::call(qkv_, capture::call(norm1_, x)).chunk(3, /*dim=*/2);
    for (at::Tensor& part : qkv) part = part.view({rows, length, kHeads, kWidth / kHeads}).transpose(1, 2);
    const at::Tensor mixed = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], /*attn_mask=*/{},
                                                              /*dropout_p=*/0.0, /*is_causal=*/true);
    const at::Tensor h = at::add(x, capture::call(proj_, mixed.transpose(1, 2).reshape({rows, length, kWidth})));
    return at::add(h, capture::call(down_, at::gelu(capture::call(up_, capture::call(norm2_, h)))));
  }

 private:
  std::shared_ptr<LayerNorm> norm1_, norm2_;
  std::shared_ptr<Linear> qkv_, proj_, up_, down_;
};

}  // namespace

class SmallTransformer : public torch::nn::Module {
 public:
  SmallTransformer()
      : tokens_(register_module("tokens", std::make_shared<Embedding>(kVocabulary, kWidth))),
        positions_(register_module("positions", std::make_shared<Embedding>(kLength, kWidth))),
        blocks_(register_module("blocks", std::make_shared<ChildList<Block>>())),
        norm_(register_module("norm", std::make_shared<LayerNorm>())) {
    for (int i = 0; i < kBlocks; ++i) blocks_->add();
  }

  at::Tensor forward(const at::Tensor& tokens, const at::Tensor& positions, const at::Tensor& target) {
    at::Tensor h = at::add(capture::call(tokens_, tokens), capture::call(positions_, positions));
    for (std::shared_ptr<Block>& block : blocks_->all()) h = capture::call(block, h);
    const at::Tensor logits = at::linear(capture::call(norm_, h), tokens_->weight());
    return at::cross_entropy_loss(logits.view({-1, kVocabulary}), target.view({-1}));
  }

 private:
  std::shared_ptr<Embedding> tokens_, positions_;
  std::shared_ptr<ChildList<Block>> blocks_;
  std::shared_ptr<LayerNorm> norm_;
};

TransformerStep::TransformerStep() : module_(std::make_shared<SmallTransformer>()) {
  models::set_real_parameters(*module_, reference::Dtype::F32, /*seed=*/1);
  parameters_ = module_->parameters();
  const at::Tensor tokens = models::index_data({1, kLength}, kVocabulary, /*seed=*/1, /*step=*/0, "tokens");
  const at::Tensor target = models::index_data({1, kLength}, kVocabulary, /*seed=*/1, /*step=*/0, "target");
  const at::Tensor positions = at::arange(kLength, at::kLong).unsqueeze(0);
  inputs_ = {tokens, positions, target};
  const graph::Graph graph = capture::capture(
      *module_,
      [this](const std::vector<at::Tensor>& in) { return std::vector{module_->forward(in[0], in[1], in[2])}; },
      {{"tokens", tokens}, {"positions", positions}, {"target", target}});
  nodes_ = graph.nodes.size();
  interpreter_ = std::make_unique<graph::Frame>(graph::Program(graph));

  const at::Tensor of_module = forward_backward(Side::Module);
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters_) gradients.push_back(parameter.grad());
  const at::Tensor of_interpreter = forward_backward(Side::Interpreter);
  PLUMBLINE_CHECK(at::equal(of_module, of_interpreter), "losses differ");
  for (size_t i = 0; i < parameters_.size(); ++i)
    PLUMBLINE_CHECK(at::equal(gradients[i], parameters_[i].grad()), "gradients of parameter " + std::to_string(i));
}

TransformerStep::~TransformerStep() = default;

at::Tensor TransformerStep::loss(Side side) {
  if (side == Side::Module) return module_->forward(inputs_[0], inputs_[1], inputs_[2]);
  interpreter_->run(inputs_, outputs_);
  return std::move(outputs_[0]);
}

at::Tensor TransformerStep::forward_backward(Side side) {
  for (const at::Tensor& parameter : parameters_) parameter.mutable_grad() = at::Tensor();
  const at::Tensor value = loss(side);
  value.backward();
  return value.detach();
}

at::Tensor TransformerStep::forward(Side side) {
  const at::NoGradGuard no_grad;
  return loss(side);
}

}  // namespace plumbline::bench
