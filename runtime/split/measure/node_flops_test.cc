// Operations of nodes: hand-computed tables, and the operations of a run that is not split into nodes.
#include "runtime/split/measure/node_flops.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <numeric>

#include "runtime/capture/capture.h"
#include "runtime/error.h"
#include "runtime/flops/flop_counter.h"
#include "runtime/flops/graph_flops.h"
#include "runtime/graph/io/text.h"

namespace plumbline::split {
namespace {

using flops::estimated_flops, flops::estimated_backward_flops, flops::FlopCounter;

using Tensors = std::vector<at::Tensor>;
using Function = std::function<at::Tensor(const Tensors&)>;

graph::Graph graph_of(const torch::nn::Module& module, const Function& forward, const Tensors& inputs) {
  std::vector<capture::NamedTensor> named;
  for (const at::Tensor& input : inputs) named.push_back({"x" + std::to_string(named.size()), input});
  return capture::capture(module, [&](const Tensors& in) { return Tensors{forward(in)}; }, named);
}

double sum(const std::vector<double>& terms) { return std::accumulate(terms.begin(), terms.end(), 0.0); }

/// One call on inputs of these sizes, which all require a gradient. Expected: the estimate of forward and of backward,
/// and the number that really runs, by hand.
struct Row {
  const char* name;
  std::vector<std::vector<int64_t>> sizes;
  Function call;
  double forward, backward, measured;
};

const auto kDouble = at::TensorOptions(at::kDouble);

std::vector<Row> rows() {
  const auto plain = [](const char* name, std::vector<std::vector<int64_t>> sizes, double forward, Function call) {
    return Row{name, std::move(sizes), std::move(call), forward, 2 * forward, 3 * forward};
  };
  const auto lstm = [](const Tensors& x) {
    return std::get<0>(at::lstm(x[0], {x[1], x[2]}, {x[3], x[4], x[5], x[6]}, true, 1, 0.0, true, false, false));
  };
  const auto gru = [](const Tensors& x) {
    return std::get<0>(at::gru(x[0], x[1], {x[2], x[3], x[4], x[5]}, true, 1, 0.0, true, false, false));
  };
  const auto attention = [](const Tensors& x) { return at::scaled_dot_product_attention(x[0], x[1], x[2]); };
  const auto einsum = [](const char* equation) {
    return [equation](const Tensors& x) { return at::einsum(equation, x); };
  };
  return {
      plain("mm", {{3, 4}, {4, 5}}, 120, [](auto& x) { return at::mm(x[0], x[1]); }),
      plain("addmm", {{5}, {3, 4}, {4, 5}}, 120, [](auto& x) { return at::addmm(x[0], x[1], x[2]); }),
      plain("addmm_", {{3, 5}, {3, 4}, {4, 5}}, 120, [](auto& x) { return x[0].clone().addmm_(x[1], x[2]); }),
      plain("bmm", {{2, 3, 4}, {2, 4, 5}}, 240, [](auto& x) { return at::bmm(x[0], x[1]); }),
      plain("baddbmm", {{2, 3, 5}, {2, 3, 4}, {2, 4, 5}}, 240, [](auto& x) { return at::baddbmm(x[0], x[1], x[2]); }),
      plain("linear", {{2, 3, 4}, {5, 4}, {5}}, 240, [](auto& x) { return at::linear(x[0], x[1], x[2]); }),
      plain("linear without bias", {{2, 3, 4}, {5, 4}}, 240, [](auto& x) { return at::linear(x[0], x[1]); }),
      plain("matmul", {{2, 1, 3, 4}, {5, 4, 6}}, 1440, [](auto& x) { return at::matmul(x[0], x[1]); }),
      // The gradient of a matrix times a vector towards the matrix is an outer product: no sums.
      {"mv", {{3, 4}, {4}}, [](auto& x) { return at::matmul(x[0], x[1]); }, 24, 48, 48},
      {"dot", {{4}, {4}}, [](auto& x) { return at::dot(x[0], x[1]); }, 8, 16, 8},
      plain("tensordot", {{3, 4, 5}, {5, 4, 2}}, 240,
            [](auto& x) { return at::tensordot(x[0], x[1], {1, -1}, {1, 0}); }),
      plain("conv1d, no batch", {{3, 8}, {4, 3, 3}}, 432, [](auto& x) { return at::conv1d(x[0], x[1]); }),
      plain("conv2d", {{2, 6, 9, 8}, {4, 3, 3, 2}, {4}}, 2 * (2 * 4 * 5 * 7) * (3 * 3 * 2),
            [](auto& x) { return at::conv2d(x[0], x[1], x[2], {2, 1}, {1, 0}, 1, /*groups=*/2); }),
      plain("conv_transpose2d", {{2, 4, 5, 5}, {4, 3, 3, 3}}, 2 * (2 * 4 * 5 * 5) * (3 * 3 * 3),
            [](auto& x) { return at::conv_transpose2d(x[0], x[1], {}, 2, 0, 0, /*groups=*/2); }),
      plain("convolution", {{2, 4, 5}, {4, 3, 3}}, 2 * (2 * 4 * 5) * (3 * 3),
            [](auto& x) { return at::convolution(x[0], x[1], {}, {1}, {0}, {1}, true, {0}, 1); }),
      // 2*3*4*6 pairs. If the values have another width, attention is composed of two bmm; otherwise it is fused, with
      // five products in backward.
      plain("attention", {{2, 3, 4, 8}, {2, 3, 6, 8}, {2, 3, 6, 5}}, 2 * 144 * (8 + 5), attention),
      {"fused attention", {{2, 3, 4, 8}, {2, 3, 6, 8}, {2, 3, 6, 8}}, attention, 4608, 9216, 4608 + 2 * 144 * 5 * 8},
      plain("lstm", {{5, 2, 3}, {1, 2, 4}, {1, 2, 4}, {16, 3}, {16, 4}, {16}, {16}}, 2 * 10 * (48 + 64), lstm),
      plain("gru", {{5, 2, 3}, {1, 2, 4}, {12, 3}, {12, 4}, {12}, {12}}, 2 * 10 * (36 + 48), gru),
      plain("gru_cell", {{2, 3}, {2, 4}, {12, 3}, {12, 4}}, 2 * 2 * (36 + 48),
            [](auto& x) { return at::gru_cell(x[0], x[1], x[2], x[3]); }),
      plain("einsum", {{2, 3, 4}, {2, 4, 5}}, 240, einsum("bij, bjk -> bik")),
      plain("einsum, implicit", {{3, 4}, {5, 4}}, 120, einsum("ij,kj")),
      plain("einsum, ellipsis", {{2, 3, 4}, {4, 5}}, 240, einsum("...ij,jk->...ik")),
      plain("einsum, summed before", {{3, 4, 7}, {4, 5}}, 120, einsum("ijq,jk->ik")),
      plain("einsum of three", {{3, 4}, {4, 5}, {5, 6}}, 120 + 180, einsum("ij,jk,kl->il")),
      {"einsum, outer", {{3}, {4}}, einsum("i,j->ij"), 12, 24, 0},
      {"elementwise", {{3, 4}}, [](auto& x) { return at::tanh(x[0]); }, 12, 12, 0},
      {"view", {{3, 4}}, [](auto& x) { return at::transpose(x[0], 0, 1); }, 0, 0, 0},
      {"views", {{3, 4}}, [](auto& x) { return at::split(x[0], 2, 1)[0]; }, 0, 0, 0},
      {"reshape", {{3, 4}}, [](auto& x) { return at::reshape(x[0], {12}); }, 0, 0, 0},
      {"factory", {{3, 4}}, [](auto&) { return at::ones({2}); }, 0, 0, 0},
      {"embedding", {{9, 4}}, [](auto& x) { return at::embedding(x[0], at::zeros({5}, at::kLong)); }, 0, 0, 0},
  };
}

TEST(Flops, TableByHand) {
  const torch::nn::Module nothing;
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name);
    Tensors inputs;
    for (const auto& sizes : row.sizes) inputs.push_back(at::rand(sizes, kDouble).requires_grad_());
    const graph::Graph graph = graph_of(nothing, row.call, inputs);
    // Beside the call in question, a clone (of the in-place row) and a factory.
    const graph::Node* node = nullptr;
    for (const graph::Node& candidate : graph.nodes)
      if (candidate.op->schema().name() != "aten::clone" && candidate.op->schema().name() != "aten::zeros")
        node = &candidate;
    ASSERT_NE(node, nullptr);
    EXPECT_EQ(estimated_flops(graph, *node), row.forward);
    EXPECT_EQ(estimated_backward_flops(graph, *node), row.backward);
    EXPECT_EQ(sum(measure_flops(graph, inputs)), row.measured);
  }
}

TEST(Flops, OnlyGradientsThatAreAskedForCost) {
  const torch::nn::Module nothing;
  const Function linear = [](const Tensors& x) { return at::linear(x[0], x[1]); };
  for (const auto& [input, weight] : {std::pair{true, true}, {true, false}, {false, true}, {false, false}}) {
    const Tensors inputs = {at::rand({3, 4}).requires_grad_(input), at::rand({5, 4}).requires_grad_(weight)};
    const graph::Graph graph = graph_of(nothing, linear, inputs);
    EXPECT_EQ(estimated_backward_flops(graph, graph.nodes[0]), 120.0 * (input + weight));
    EXPECT_EQ(measure_flops(graph, inputs), std::vector<double>{120.0 * (1 + input + weight)});
  }
  const Tensors inputs = {at::rand({3, 4}).requires_grad_(), at::rand({5, 4}).requires_grad_()};
  const Function quiet = [&](const Tensors& x) {
    const c10::NoGradGuard no_grad;
    return linear(x);
  };
  const graph::Graph graph = graph_of(nothing, quiet, inputs);
  EXPECT_EQ(estimated_flops(graph), std::vector<double>{120});
  EXPECT_EQ(measure_flops(graph, inputs), std::vector<double>{120});
}

struct Block : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor h = at::batch_norm(at::conv1d(x, filter, {}, 1, 1), {}, {}, mean, var, true, 0.1, 1e-5, false);
    h.relu_();
    h = h.transpose(1, 2);
    const Tensors qkv = at::linear(h, in).chunk(3, -1);
    h = h + at::dropout(at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2]), 0.5, true);
    count.add_(1);
    return at::matmul(at::gelu(at::linear(h, up)), up);
  }
  at::Tensor filter = register_parameter("filter", at::rand({8, 4, 3}));
  at::Tensor in = register_parameter("in", at::rand({24, 8}));
  at::Tensor up = register_parameter("up", at::rand({16, 8}));
  at::Tensor mean = register_buffer("mean", at::zeros({8}));
  at::Tensor var = register_buffer("var", at::ones({8}));
  at::Tensor count = register_buffer("count", at::zeros({}));
};

TEST(Flops, NodesTogetherCostWhatTheWholeModelCosts) {
  Block block;
  const at::Tensor x = at::rand({2, 4, 10}).requires_grad_();
  const graph::Graph graph = graph_of(block, [&](const Tensors& in) { return block.forward(in[0]); }, {x});
  FlopCounter whole;
  {
    const capture::InterposerScope counting(whole);
    const at::Tensor out = block.forward(x);
    out.backward(at::ones_like(out));
  }
  const std::vector<double> nodes = measure_flops(graph, {x});
  EXPECT_EQ(nodes.size(), graph.nodes.size());
  EXPECT_EQ(sum(nodes), whole.flops());
  EXPECT_GT(whole.flops(), 0);
}

TEST(Flops, TensorsOnTheMetaDeviceAreEnough) {
  Block block;
  const at::Tensor x = at::rand({2, 4, 10});
  graph::Graph graph = graph_of(block, [&](const Tensors& in) { return at::linear(at::gelu(in[0]), block.up.t()); },
                                {at::rand({2, 16})});
  const std::vector<double> estimate = estimated_flops(graph), measured = measure_flops(graph, {at::rand({2, 16})});
  for (graph::Attribute& attribute : graph.attributes) attribute.tensor = attribute.tensor.to(at::kMeta);
  EXPECT_EQ(estimated_flops(graph), estimate);
  EXPECT_EQ(measure_flops(graph, {at::empty({2, 16}, at::TensorOptions(at::kMeta))}), measured);
  for (graph::Attribute& attribute : graph.attributes) attribute.tensor = at::Tensor();
  EXPECT_EQ(estimated_flops(graph), estimate);
}

TEST(Flops, AnOperandMayBeUndefined) {
  // The gradient of a weight that is not asked for (%6), which linear takes for no bias.
  const graph::Graph graph = graph::parse_graph(R"(input %0: f32[2,4] = "x"
input %1: f32[3,4] = "w"
%2: f32[2,4], %3: f32[2,1], %4: f32[2,1] = aten::native_layer_norm(%0, [4], None, None, 1e-05)
%5: f32[2,4], %6: f32[3], None = aten::native_layer_norm_backward(%0, %0, [4], %3, %4, None, None, [True, False, False])
%7: f32[2,3] = aten::linear(%5, %1, %6)
return %7
)");
  EXPECT_EQ(measure_flops(graph, {at::rand({2, 4}), at::rand({3, 4})}), (std::vector<double>{0, 0, 48}));
}

TEST(Flops, ACondCostsItsCostlierBranch) {
  const torch::nn::Module nothing;
  const Tensors inputs = {at::rand({3, 4}).requires_grad_(), at::rand({4, 5}).requires_grad_()};
  const auto branch = [&](const Function& f) {
    return std::make_shared<const graph::Graph>(graph_of(nothing, f, inputs));
  };
  graph::Node cond;
  cond.op = c10::Dispatcher::singleton().findSchemaOrThrow("plumbline::cond", "");
  cond.branches = {branch([](auto& x) { return at::mm(x[0], x[1]).relu(); }),
                   branch([](auto& x) { return at::tanh(x[0]); })};
  EXPECT_EQ(estimated_flops(graph::Graph{}, cond), 120 + 15);
  EXPECT_EQ(estimated_backward_flops(graph::Graph{}, cond), 240 + 15);
}

}  // namespace
}  // namespace plumbline::split
