// That values lie in a joint graph as they do in eager mode, and that random numbers fall where they fall there.
#include <algorithm>

#include "runtime/partition/joint/clean.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/policy/policy.h"
#include "runtime/partition/testing/trace_testing.h"
#include "runtime/partition/trace/layout.h"
#include "runtime/testing/refusal.h"

namespace plumbline::partition {
namespace {

using M = TracedModule;
using Body = std::function<at::Tensor(const at::Tensor&)>;

/// Traces `body` of `x` times a parameter, and holds it against autograd: bits, and strides of the output.
JointTrace expect_as_in_eager(const Body& body, const at::Tensor& x) {
  const auto module = module_of([&](M& m) {
    const at::Tensor w = m.parameter("w", {x.size(-1)});
    m.body = [&body, w](const Tensors& in) { return Tensors{body(in[0] * w)}; };
  });
  const JointTrace trace = expect_bitwise(*module, {x});
  const at::Tensor eager = module->body({x})[0];
  std::vector<int64_t> strides;
  for (const Extent& stride : trace.graph.nodes[trace.graph.outputs[0]].out.strides) strides.push_back(stride.value);
  EXPECT_TRUE(lies_so(eager, strides)) << eager.strides() << " in eager mode, " << at::IntArrayRef(strides);
  return trace;
}

at::Tensor channels_last(const at::Tensor& image) { return image.contiguous(at::MemoryFormat::ChannelsLast); }

/// bernoulli_ fills in the order of memory.
TEST(TraceLayouts, DropoutOfWhatIsNotContiguousDrawsAsInEagerMode) {
  const std::vector<std::pair<std::string, Body>> cases{
      {"transposed", [](const at::Tensor& x) { return at::dropout(x.transpose(0, 1), 0.4, true); }},
      {"permuted", [](const at::Tensor& x) { return at::dropout(x.permute({2, 0, 3, 1}), 0.4, true); }},
      {"channels last", [](const at::Tensor& x) { return at::dropout(channels_last(x), 0.5, true); }},
      {"with gaps", [](const at::Tensor& x) { return at::dropout(x.slice(3, 0, 6, 2).transpose(1, 3), 0.5, true); }},
      {"expanded", [](const at::Tensor& x) { return at::dropout(x.sum(0).expand({4, 3, 5, 6}), 0.5, true); }},
      {"alpha", [](const at::Tensor& x) { return at::alpha_dropout(x.transpose(1, 2), 0.4, true); }},
      {"feature", [](const at::Tensor& x) { return at::feature_dropout(x.transpose(0, 1), 0.4, true); }},
      {"in place",
       [](const at::Tensor& x) {
         at::Tensor y = x.clone().transpose(0, 3);
         return at::dropout_(y, 0.4, true) * 1.0;
       }},
      {"bernoulli_",
       [](const at::Tensor& x) { return x * at::zeros_like(x).transpose(1, 2).bernoulli_(0.5).transpose(1, 2); }},
      {"attention", [](const at::Tensor& x) {
         const at::Tensor heads = x.transpose(1, 2);
         return at::scaled_dot_product_attention(heads, heads, heads, {}, 0.3);
       }}};
  for (const auto& [name, body] : cases) {
    SCOPED_TRACE(name);
    expect_as_in_eager(body, at::randn({2, 3, 5, 6}));
  }
}

/// Of these there is an operator that is no write: they draw there as they are called.
TEST(TraceLayouts, OtherDrawsFallWhereTheyFallInEagerMode) {
  const std::vector<std::pair<std::string, Body>> cases{
      {"bernoulli itself", [](const at::Tensor& x) { return x.t() * at::bernoulli(x.t().detach(), 0.5); }},
      {"bernoulli of probabilities",
       [](const at::Tensor& x) { return x.t() * at::bernoulli(x.t().sigmoid().detach()); }},
      {"rand_like", [](const at::Tensor& x) { return x.t() * at::rand_like(x.t()); }},
      {"uniform_", [](const at::Tensor& x) { return x.t() * at::empty_like(x.t()).uniform_(); }},
      {"normal_", [](const at::Tensor& x) { return x.t() * at::empty_like(x.t()).normal_(); }},
      {"exponential_", [](const at::Tensor& x) { return x.t() * at::empty_like(x.t()).exponential_(); }},
      {"bernoulli_ of a tensor",
       [](const at::Tensor& x) { return x.t() * at::empty_like(x.t()).bernoulli_(at::full_like(x.t(), 0.5)); }}};
  for (const auto& [name, body] : cases) {
    SCOPED_TRACE(name);
    EXPECT_EQ(calls_of(expect_as_in_eager(body, at::randn({7, 9})), "aten::permute"), 0);
  }
}

/// Into gaps: the order is that of the indices all the same.
TEST(TraceLayouts, DrawsIntoPartsOfATensor) {
  const std::vector<std::pair<std::string, std::function<void(const at::Tensor&)>>> cases{
      {"bernoulli_", [](const at::Tensor& part) { part.bernoulli_(0.5); }},
      {"bernoulli_, transposed", [](const at::Tensor& part) { part.t().bernoulli_(0.5); }},
      {"uniform_", [](const at::Tensor& part) { part.uniform_(); }},
      {"few normal_", [](const at::Tensor& part) { part.narrow(0, 0, 2).normal_(); }}};
  for (const auto& [name, fill] : cases) {
    SCOPED_TRACE(name);
    expect_as_in_eager(
        [&](const at::Tensor& x) {
          const at::Tensor numbers = at::zeros({8, 8});
          fill(numbers.slice(1, 0, 8, 2));
          return x * numbers;
        },
        at::randn({8, 8}));
  }
  const auto module = module_of([](M& m) {
    m.body = [](const Tensors& in) {
      const at::Tensor numbers = at::zeros({8, 8});
      numbers.narrow(1, 0, 4).normal_();
      return Tensors{in[0] * numbers};
    };
  });
  const Tensors inputs{at::ones({8, 8})};
  const graph::Graph graph = capture_of(*module, module->body, inputs);
  const std::string why = testing::refusal([&] { trace_joint(graph, inputs); });
  testing::expect_part(why, "trace: at aten::normal_functional, node ");
  testing::expect_part(why, "it fills a part of a tensor");
}

TEST(TraceLayouts, WhatIsContiguousIsNotPermuted) {
  const auto dropout = [](const at::Tensor& x) { return at::dropout(x, 0.4, true); };
  EXPECT_EQ(calls_of(expect_as_in_eager(dropout, at::randn({6, 8})), "aten::permute"), 0);
  EXPECT_EQ(calls_of(expect_as_in_eager(dropout, at::randn({6, 1}).t()), "aten::permute"), 0);
}

/// The functional form of rrelu gives the strides of its input, rrelu contiguous ones.
TEST(TraceLayouts, ResultsLieAsInEagerMode) {
  const std::vector<std::pair<std::string, Body>> cases{
      {"rrelu", [](const at::Tensor& x) { return at::rrelu(x.transpose(1, 2), 0.1, 0.3, true); }},
      {"its product", [](const at::Tensor& x) { return at::rrelu(x.transpose(1, 2), 0.1, 0.3, true) * 1.0; }},
      {"its sum", [](const at::Tensor& x) { return at::rrelu(x.transpose(0, 2), 0.1, 0.3, true).sum(0); }},
      {"its view, written",
       [](const at::Tensor& x) {
         const at::Tensor y = at::rrelu(x.transpose(1, 2), 0.1, 0.3, true) * 1.0;
         y.select(0, 1).mul_(2);
         return y + 1;
       }},
      {"writes",
       [](const at::Tensor& x) {
         const at::Tensor y = x.transpose(0, 1) * 2;
         y.add_(x.sum(0).unsqueeze(1)).mul_(0.5);
         y.slice(2, 0, 2).copy_(y.slice(2, 2, 4));
         y.masked_fill_(y > 1, 0.25);
         return y.sigmoid_();
       }},
      {"channels last", [](const at::Tensor& x) {
         const at::Tensor y = channels_last(x.unsqueeze(0)) + 1;
         y.select(1, 0).zero_();
         return at::batch_norm(y, {}, {}, {}, {}, true, 0.1, 1e-5, false).relu_();
       }}};
  for (const auto& [name, body] : cases) {
    SCOPED_TRACE(name);
    expect_as_in_eager(body, at::randn({4, 3, 6}));
  }
}

TEST(TraceLayouts, CallsUnderNoGradAreMarked) {
  const auto module = module_of([](M& m) {
    const at::Tensor w = m.parameter("w", {4});
    m.body = [=](const Tensors& in) {
      at::Tensor frozen;
      {
        const c10::NoGradGuard no_grad;
        frozen = at::exp(in[0] * w);
      }
      return Tensors{at::sin(in[0] * w) * frozen};
    };
  });
  const JointTrace trace = expect_bitwise(*module, {at::randn({3, 4})});
  std::vector<std::string> marked;
  for (const JointNode& node : trace.graph.nodes)
    if (node.no_grad) marked.push_back(node.name);
  EXPECT_EQ(marked, (std::vector<std::string>{"mul", "exp"}));
}

/// What was made without gradients cannot stand for what needs them.
TEST(TraceLayouts, CallsUnderNoGradAreMergedWithTheirLikeOnly) {
  for (const bool no_grad : {true, false}) {
    const auto module = module_of([&](M& m) {
      const at::Tensor w = m.parameter("w", {4});
      m.body = [=](const Tensors& in) {
        at::Tensor first, second;
        {
          const c10::AutoGradMode mode(!no_grad);
          first = at::exp(in[0] * w), second = at::exp(in[0] * w);
        }
        return Tensors{first * second * at::exp(in[0] * w) + 1};
      };
    });
    JointTrace trace = expect_bitwise(*module, {at::randn({3, 4})});
    trace.graph = merge_equal_nodes(std::move(trace.graph), load_policy("torch-2.15")).graph;
    EXPECT_EQ(calls_of(trace, "aten::exp"), no_grad ? 2 : 1);
  }
}

}  // namespace
}  // namespace plumbline::partition
