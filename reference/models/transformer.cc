// transformer-lm: a language model on the bytes of a text; pre-norm blocks, causal attention, embedding tied to the
// head. transformer-mixed: the same, with the middle in another dtype than the ends.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>

#include "reference/models/families.h"
#include "reference/models/parts/counter.h"
#include "reference/models/parts/layers.h"
#include "reference/models/parts/parameters.h"
#include "reference/models/text.h"
#include "runtime/capture/call.h"

namespace plumbline::models {
namespace transformer_models {
namespace {

constexpr int block_count = 8;
constexpr int64_t vocabulary = 128, length = 16, width = 32, heads = 4;

}  // namespace

/// Normalises over the last dimension.
class LayerNorm : public torch::nn::Module {
 public:
  LayerNorm()
      : weight_(register_parameter("weight", at::zeros({width}))),
        bias_(register_parameter("bias", at::zeros({width}))) {}
  at::Tensor forward(const at::Tensor& x) { return at::layer_norm(x, {width}, weight_, bias_); }

 private:
  at::Tensor weight_, bias_;
};

/// x [rows, length, width]; each position attends to itself and to earlier positions.
class Attention : public torch::nn::Module {
 public:
  Attention()
      : qkv_(register_module("qkv", std::make_shared<Linear>(width, 3 * width))),
        proj_(register_module("proj", std::make_shared<Linear>(width, width))) {}
  at::Tensor forward(const at::Tensor& x) {
    const int64_t rows = x.size(0), positions = x.size(1);
    std::vector<at::Tensor> qkv = capture::call(qkv_, x).chunk(3, /*dim=*/2);
    for (at::Tensor& part : qkv) part = part.view({rows, positions, heads, width / heads}).transpose(1, 2);
    const at::Tensor mixed = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], /*attn_mask=*/{},
                                                              /*dropout_p=*/0.0, /*is_causal=*/true);
    return capture::call(proj_, mixed.transpose(1, 2).reshape({rows, positions, width}));
  }

 private:
  std::shared_ptr<Linear> qkv_, proj_;
};

class Block : public torch::nn::Module {
 public:
  Block()
      : norm1_(register_module("norm1", std::make_shared<LayerNorm>())),
        norm2_(register_module("norm2", std::make_shared<LayerNorm>())),
        attention_(register_module("attention", std::make_shared<Attention>())),
        up_(register_module("up", std::make_shared<Linear>(width, width))),
        down_(register_module("down", std::make_shared<Linear>(width, width))) {}
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor h = at::add(x, capture::call(attention_, capture::call(norm1_, x)));
    return at::add(h, capture::call(down_, at::gelu(capture::call(up_, capture::call(norm2_, h)))));
  }

 private:
  std::shared_ptr<LayerNorm> norm1_, norm2_;
  std::shared_ptr<Attention> attention_;
  std::shared_ptr<Linear> up_, down_;
};

/// Adds a learned vector to each position.
class Positions : public torch::nn::Module {
 public:
  Positions() : weight_(register_parameter("weight", at::zeros({length, width}))) {}
  at::Tensor forward(const at::Tensor& x) { return at::add(x, weight_); }

 private:
  at::Tensor weight_;
};

/// tokens [rows, 16] -> logits [rows, 16, 128].
class TransformerLm : public torch::nn::Module {
 public:
  TransformerLm()
      : tok_(register_module("tok", std::make_shared<Embedding>(vocabulary, width))),
        pos_(register_module("pos", std::make_shared<Positions>())),
        blocks_(register_module("blocks", std::make_shared<ChildList<Block>>())),
        norm_(register_module("norm", std::make_shared<LayerNorm>())) {
    for (int i = 0; i < block_count; ++i) blocks_->add();
  }
  at::Tensor forward(const at::Tensor& tokens) {
    at::Tensor h = capture::call(pos_, capture::call(tok_, tokens));
    for (std::shared_ptr<Block>& block : blocks_->all()) {
      if (is_mixed_) h = h.to(block->parameters().front().scalar_type());
      h = capture::call(block, h);
    }
    return at::linear(capture::call(norm_, h), tok_->weight());
  }
  /// Casts everything except blocks 2 to 5 to float32, if the blocks have fewer bits; each block casts its input to its
  /// dtype.
  void widen_ends() {
    is_mixed_ = true;
    if (tok_->weight().element_size() > 2) return;
    const c10::NoGradGuard no_grad;
    for (const auto& item : named_parameters()) {
      bool inner = false;
      for (const char* name : {"blocks.2.", "blocks.3.", "blocks.4.", "blocks.5."})
        inner = inner || item.key().starts_with(name);
      if (!inner) item.value().set_data(item.value().to(at::kFloat));
    }
  }

 private:
  bool is_mixed_ = false;
  std::shared_ptr<Embedding> tok_;
  std::shared_ptr<Positions> pos_;
  std::shared_ptr<ChildList<Block>> blocks_;
  std::shared_ptr<LayerNorm> norm_;
};

namespace {

Model model(reference::Dtype dtype, uint64_t seed, bool is_mixed) {
  const auto root = std::make_shared<TransformerLm>();
  set_real_parameters(*root, dtype, seed);
  if (is_mixed) root->widen_ends();
  return listed_model(root, "tokens", "blocks", block_count, {"norm2"});
}

/// Rows are windows of the text at arbitrary positions; the target of a byte is the next byte.
Batch batch(reference::Dtype, int rows, uint64_t seed, int step) {
  const std::string_view text = gettysburg_address();
  const Counter begins(seed, batch_stream(step, "tokens"));
  const at::Tensor tokens = at::empty({rows, length}, at::kLong), next = at::empty({rows, length}, at::kLong);
  for (int row = 0; row < rows; ++row) {
    const int64_t begin = begins.below(static_cast<uint64_t>(row), static_cast<int64_t>(text.size()) - length);
    for (int64_t i = 0; i < length; ++i) {
      tokens.mutable_data_ptr<int64_t>()[row * length + i] = text[static_cast<size_t>(begin + i)];
      next.mutable_data_ptr<int64_t>()[row * length + i] = text[static_cast<size_t>(begin + i + 1)];
    }
  }
  return {.inputs = {tokens}, .targets = next};
}

}  // namespace

}  // namespace transformer_models

std::vector<Family> transformer_families() {
  using namespace transformer_models;
  return {{"transformer-lm", [](reference::Dtype dtype, uint64_t seed) { return model(dtype, seed, false); }, batch},
          {"transformer-mixed", [](reference::Dtype dtype, uint64_t seed) { return model(dtype, seed, true); }, batch}};
}

}  // namespace plumbline::models
