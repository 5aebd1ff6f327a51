#include "runtime/capture/meta/meta_device.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/library.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/rnn.h>
#include <torch/types.h>

#include <fstream>

#include "runtime/capture/call.h"
#include "runtime/capture/capture.h"
#include "runtime/capture/meta/shape_rules.h"
#include "runtime/capture/testing/meta_graphs.h"
#include "runtime/split/split.h"

TORCH_LIBRARY(plumbline_meta_test, library) {
  library.def("halved(Tensor x) -> Tensor");
  library.def("ruled(Tensor x) -> Tensor");
  library.def("composed(Tensor x) -> Tensor", [](const at::Tensor& x) { return at::mul(x, 2); });
}
TORCH_LIBRARY_IMPL(plumbline_meta_test, CPU, library) {
  library.impl("halved", [](const at::Tensor& x) { return at::mul(x, 0.5); });
  library.impl("ruled", [](const at::Tensor& x) { return at::mul(x, 0.5); });
}

namespace plumbline::capture {
namespace {

using testing::expect_same_graph;
using testing::meta_like;
using Tensors = std::vector<at::Tensor>;

// --- layers of many families --------------------------------------------------------------------------------------

using Forward = std::function<at::Tensor(const at::Tensor&)>;

/// Builds a root twice, on the CPU and on meta, and compares the captures. `build` registers children and returns
/// forward.
void expect_same_capture(const std::function<Forward(torch::nn::Module&)>& build, const at::Tensor& x) {
  torch::nn::Module real("Root"), huge("Root");
  const Forward on_cpu = build(real);
  Forward on_meta;
  {
    const MetaDeviceScope scope;
    on_meta = build(huge);
  }
  const auto graph_of = [](torch::nn::Module& root, const Forward& forward, const at::Tensor& input) {
    return capture(root, [&](const Tensors& in) { return Tensors{forward(in[0])}; }, {{"x", input}});
  };
  for (const bool training : {true, false}) {
    real.train(training);
    huge.train(training);
    expect_same_graph(graph_of(huge, on_meta, meta_like(x)), graph_of(real, on_cpu, x));
  }
}

TEST(MetaCapture, LlamaBlock) {
  // RMSNorm, rotary embedding, grouped heads under a mask made in forward, and a gated MLP.
  expect_same_capture(
      [](torch::nn::Module& root) -> Forward {
        const at::Tensor scale = root.register_parameter("scale", at::ones({32}));
        auto qkv = root.register_module("qkv", torch::nn::Linear(torch::nn::LinearOptions(32, 64).bias(false)));
        auto gate = root.register_module("gate", torch::nn::Linear(32, 48));
        auto up = root.register_module("up", torch::nn::Linear(32, 48));
        auto down = root.register_module("down", torch::nn::Linear(48, 32));
        return [=](const at::Tensor& x) mutable {
          const int64_t n = x.size(0), length = x.size(1);
          const at::Tensor angles = at::outer(at::arange(length, at::kFloat), at::arange(4, at::kFloat).neg().exp());
          const at::Tensor cos = at::cat({angles, angles}, 1).cos(), sin = at::cat({angles, angles}, 1).sin();
          const auto rotated = [&](const at::Tensor& t) {
            const Tensors halves = t.chunk(2, -1);
            return t * cos + at::cat({-halves[1], halves[0]}, -1) * sin;
          };
          const at::Tensor h = x * at::rsqrt(x.pow(2).mean(-1, true) + 1e-6) * scale;
          const Tensors parts = call(qkv, h).split_with_sizes({32, 16, 16}, -1);
          const at::Tensor q = rotated(parts[0].view({n, length, 4, 8}).transpose(1, 2));
          const at::Tensor k = rotated(parts[1].view({n, length, 2, 8}).transpose(1, 2)).repeat_interleave(2, 1);
          const at::Tensor v = parts[2].view({n, length, 2, 8}).transpose(1, 2).repeat_interleave(2, 1);
          const at::Tensor mask = at::ones({length, length}, at::kBool).tril();
          const at::Tensor mixed = at::scaled_dot_product_attention(q, k, v, mask);
          const at::Tensor y = x + mixed.transpose(1, 2).reshape({n, length, 32});
          return y + call(down, at::silu(call(gate, y)) * call(up, y));
        };
      },
      at::randn({2, 6, 32}));
}

TEST(MetaCapture, MixtureOfExperts) {
  expect_same_capture(
      [](torch::nn::Module& root) -> Forward {
        auto router = root.register_module("router", torch::nn::Linear(8, 4));
        const at::Tensor experts = root.register_parameter("experts", at::randn({4, 8, 8}));
        return [=](const at::Tensor& x) mutable {
          const auto [scores, chosen] = call(router, x).softmax(-1).topk(2, -1);
          const at::Tensor weights = at::zeros_like(call(router, x)).scatter(1, chosen, scores / scores.sum(-1, true));
          at::Tensor y = at::zeros_like(x);
          for (int64_t e = 0; e < 4; ++e) y = y + weights.select(1, e).unsqueeze(1) * x.mm(experts[e]);
          const at::Tensor gathered =
              at::einsum("nd,nkde->nke", {x, experts.index_select(0, chosen.view({-1})).view({-1, 2, 8, 8})});
          return y + (gathered * scores.unsqueeze(-1)).sum(1);
        };
      },
      at::randn({5, 8}));
}

TEST(MetaCapture, ConvolutionsAndNorms) {
  for (const at::MemoryFormat format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast})
    expect_same_capture(
        [](torch::nn::Module& root) -> Forward {
          auto conv =
              root.register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 6, 3).stride(2).padding(1)));
          auto batch = root.register_module("batch", torch::nn::BatchNorm2d(6));
          auto group = root.register_module("group", torch::nn::GroupNorm(2, 6));
          auto up = root.register_module(
              "up", torch::nn::ConvTranspose2d(torch::nn::ConvTranspose2dOptions(6, 4, 2).stride(2)));
          return [=](const at::Tensor& x) mutable {
            at::Tensor h = at::max_pool2d(at::relu(call(batch, call(conv, x))), 2, 1, 1);
            h = at::hardswish(call(group, h));
            h = at::upsample_nearest2d(call(up, h), at::IntArrayRef{8, 8});
            return at::adaptive_avg_pool2d(h, {2, 2}).reshape({x.size(0), -1});
          };
        },
        at::randn({2, 4, 8, 8}).contiguous(format));
}

TEST(MetaCapture, Lstm) {
  for (const bool batch_first : {false, true})
    expect_same_capture(
        [&](torch::nn::Module& root) -> Forward {
          auto lstm = root.register_module(
              "lstm", torch::nn::LSTM(torch::nn::LSTMOptions(5, 6).num_layers(2).batch_first(batch_first)));
          return [=](const at::Tensor& x) mutable {
            const at::Tensor y = std::get<0>(call(lstm, x));
            return y.reshape({-1, 6}).contiguous();
          };
        },
        at::randn({3, 4, 5}));
}

TEST(MetaCapture, WhatForwardMakesKeepsItsValues) {
  torch::nn::Module root("Root");
  at::Tensor weight;
  {
    const MetaDeviceScope on_meta;
    weight = root.register_parameter("weight", at::zeros({3}));
  }
  const graph::Graph graph =
      capture(root,
              [&](const Tensors& in) {
                at::Tensor sums = at::zeros({3});  // on the CPU, written from meta
                sums.add_(in[0] * torch::tensor({1.5F, 2.5F, 3.5F}));
                return Tensors{sums.index_select(0, at::arange(2)) + weight.index_select(0, at::arange(2))};
              },
              {{"x", at::empty({3}, at::kMeta)}});
  int constants = 0;
  for (const graph::Attribute& attribute : graph.attributes)
    if (attribute.kind == graph::AttributeKind::Constant) {
      ++constants;
      EXPECT_TRUE(at::equal(attribute.tensor, at::arange(3) + 1.5));
    }
  EXPECT_EQ(constants, 1);
  EXPECT_TRUE(graph.values[graph.outputs[0]].requires_grad);
}

// --- refusals ------------------------------------------------------------------------------------------------------

/// Captures `body` as the child "inner" on meta, and returns the refusal.
std::string refusal(const std::function<at::Tensor(const at::Tensor&)>& body) {
  struct Inner : torch::nn::Module {
    Inner() : torch::nn::Module("Inner") {}
    at::Tensor forward(const at::Tensor& x) { return body(x); }
    std::function<at::Tensor(const at::Tensor&)> body;
  };
  torch::nn::Module root("Root");
  auto inner = root.register_module("inner", std::make_shared<Inner>());
  inner->body = body;
  try {
    capture(root, [&](const Tensors& in) { return Tensors{call(inner, in[0])}; }, {{"x", at::empty({3}, at::kMeta)}});
  } catch (const CaptureError& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "captured";
}

at::Tensor call_operator(const char* name, const at::Tensor& x) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<at::Tensor(const at::Tensor&)>().call(x);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(MetaCapture, RefusesWhatDependsOnData) {
  for (const auto& [body, what] : std::vector<std::pair<Forward, std::string>>{
           {[](const at::Tensor& x) { return at::nonzero(x); }, "aten::nonzero asks for values"},
           {[](const at::Tensor& x) { return x.index({x > 0}); }, "aten::nonzero asks for values"},
           {[](const at::Tensor& x) { return at::masked_select(x, x > 0); }, "aten::masked_select asks for values"},
           {[](const at::Tensor& x) { return x * x.sum().item<float>(); }, "keep the computation in tensors"}}) {
    const std::string text = refusal(body);
    EXPECT_TRUE(has(text, what)) << text;
    EXPECT_TRUE(has(text, "in module 'inner' (Inner)")) << text;
  }
}

TEST(MetaCapture, AnOperatorWithoutAMetaPathNeedsARule) {
  const auto halved = [](const at::Tensor& x) { return call_operator("plumbline_meta_test::halved", x); };
  const std::string text = refusal(halved);
  for (const char* part : {"at plumbline_meta_test::halved", "module 'inner'",
                           "by plumbline::capture::add_shape_rule(\"plumbline_meta_test::halved\""})
    EXPECT_TRUE(has(text, part)) << text;
  add_shape_rule("plumbline_meta_test::ruled", [](std::span<const c10::IValue> arguments) {
    return std::vector<c10::IValue>{at::empty_like(arguments[0].toTensor())};
  });
  EXPECT_EQ(refusal([](const at::Tensor& x) { return call_operator("plumbline_meta_test::ruled", x); }), "captured");
  EXPECT_THROW(add_shape_rule("where", [](auto) { return std::vector<c10::IValue>{}; }), InputError);
  EXPECT_THROW(add_shape_rule("aten::where.self", {}), InputError);
}

TEST(MetaCapture, TheRuleOfACompositionGivesAHistory) {
  add_shape_rule("plumbline_meta_test::composed", [](std::span<const c10::IValue> arguments) {
    return std::vector<c10::IValue>{at::empty({7}, arguments[0].toTensor().options())};
  });
  torch::nn::Module root("Root");
  const auto composed_of = [&](bool requires_grad) {
    const graph::Graph graph =
        capture(root, [&](const Tensors& in) { return Tensors{call_operator("plumbline_meta_test::composed", in[0])}; },
                {{"x", at::empty({3}, at::kMeta).requires_grad_(requires_grad)}});
    EXPECT_EQ(graph.nodes.size(), 1U);
    return graph.values[graph.outputs[0]];
  };
  EXPECT_EQ(composed_of(true).sizes, std::vector<int64_t>{7});
  EXPECT_TRUE(composed_of(true).requires_grad);
  EXPECT_FALSE(composed_of(false).requires_grad);
}

// --- construction -------------------------------------------------------------------------------------------------

TEST(MetaDevice, EverythingMadeInTheScopeIsOnMeta) {
  Tensors made;
  const at::Tensor outside = at::ones({2});
  {
    const MetaDeviceScope on_meta;
    made = {torch::tensor({1.0, 2.0}),       torch::tensor(std::vector<double>{1, 2, 3}),
            torch::tensor({{1, 2}, {3, 4}}), at::arange(4),
            at::randn({2, 2}, at::kCPU),     at::randperm(5),
            at::full({2}, 1.0).normal_(),    at::zeros({2}, at::TensorOptions().pinned_memory(true))};
    EXPECT_TRUE(at::zeros_like(outside).is_cpu());
    EXPECT_TRUE(at::equal(outside + outside, at::empty_like(outside).fill_(2)));
    EXPECT_THROW(at::empty({2, 2}).data_ptr<float>(), c10::Error);
    EXPECT_THROW(call_operator("plumbline_meta_test::halved", at::zeros({2})), InputError);
  }
  for (const at::Tensor& tensor : made) EXPECT_TRUE(tensor.is_meta());
  EXPECT_TRUE(at::zeros({2}).is_cpu());
}

// --- 26 billion parameters ----------------------------------------------------------------------------------------

struct Block : torch::nn::Module {
  explicit Block(int64_t d)
      : norm1(register_module("norm1", torch::nn::LayerNorm(std::vector<int64_t>{d}))),
        norm2(register_module("norm2", torch::nn::LayerNorm(std::vector<int64_t>{d}))),
        qkv(register_module("qkv", torch::nn::Linear(d, 3 * d))),
        proj(register_module("proj", torch::nn::Linear(d, d))),
        up(register_module("up", torch::nn::Linear(d, 4 * d))),
        down(register_module("down", torch::nn::Linear(4 * d, d))) {}
  at::Tensor forward(const at::Tensor& x) {
    const int64_t n = x.size(0), length = x.size(1), d = x.size(2);
    Tensors parts = call(qkv, call(norm1, x)).chunk(3, 2);
    for (at::Tensor& part : parts) part = part.view({n, length, 64, d / 64}).transpose(1, 2);
    const at::Tensor mixed = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
    const at::Tensor h = x + call(proj, mixed.transpose(1, 2).reshape({n, length, d}));
    return h + call(down, at::gelu(call(up, call(norm2, h))));
  }
  torch::nn::LayerNorm norm1, norm2;
  torch::nn::Linear qkv, proj, up, down;
};

struct Gpt : torch::nn::Module {
  Gpt(int64_t layers, int64_t d, int64_t vocabulary, int64_t length)
      : tok(register_module("tok", torch::nn::Embedding(vocabulary, d))),
        pos(register_module("pos", torch::nn::Embedding(length, d))),
        norm(register_module("norm", torch::nn::LayerNorm(std::vector<int64_t>{d}))) {
    for (int64_t i = 0; i < layers; ++i)
      blocks.push_back(register_module("block" + std::to_string(i), std::make_shared<Block>(d)));
  }
  at::Tensor forward(const at::Tensor& tokens) {
    at::Tensor h = call(tok, tokens) + call(pos, at::arange(tokens.size(1)));
    for (std::shared_ptr<Block>& block : blocks) h = call(block, h);
    return at::linear(call(norm, h), tok->weight);
  }
  torch::nn::Embedding tok, pos;
  torch::nn::LayerNorm norm;
  std::vector<std::shared_ptr<Block>> blocks;
};

/// A line of /proc/self/status, in KiB.
int64_t status_kib(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key + ":")) return std::stoll(line.substr(key.size() + 1));
  return -1;
}

TEST(MetaDevice, TwentySixBillionParametersWithoutTheirMemory) {
  std::ofstream("/proc/self/clear_refs") << 5;  // resets VmHWM, if permitted
  const int64_t before = status_kib("VmHWM");
  ASSERT_GT(before, 0);
  std::shared_ptr<Gpt> model;
  {
    const MetaDeviceScope on_meta;
    model = std::make_shared<Gpt>(32, 8192, 32000, 2048);
  }
  int64_t numbers = 0;
  for (const at::Tensor& parameter : model->parameters()) numbers += parameter.numel();
  EXPECT_GT(numbers, 26'000'000'000);
  const graph::Graph graph = capture(*model, [&](const Tensors& in) { return Tensors{model->forward(in[0])}; },
                                     {{"tokens", at::empty({4, 2048}, at::TensorOptions(at::kMeta).dtype(at::kLong))}});
  split::SplitOptions options;
  for (int stage = 1; stage < 8; ++stage) options.points.push_back({"block" + std::to_string(4 * stage)});
  const split::Pipe pipe = split::split(graph, options);
  EXPECT_LT(status_kib("VmHWM") - before, 500 * 1024);
  ASSERT_EQ(pipe.num_stages(), 8);
  ASSERT_EQ(pipe.boundaries.size(), 7U);
  for (const split::Boundary& boundary : pipe.boundaries) {
    EXPECT_EQ(boundary.value.sizes, (std::vector<int64_t>{4, 2048, 8192}));
    EXPECT_TRUE(boundary.has_gradient);
  }
  ASSERT_EQ(pipe.shared.size(), 1U);
  EXPECT_EQ(pipe.shared[0].name, "tok.weight");
  EXPECT_EQ(pipe.shared[0].stages, (std::vector<int>{0, 7}));
  EXPECT_EQ(graph.values[graph.outputs[0]].sizes, (std::vector<int64_t>{4, 2048, 32000}));
}

}  // namespace
}  // namespace plumbline::capture
