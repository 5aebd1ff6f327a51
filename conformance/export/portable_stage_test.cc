#include "conformance/export/portable_stage.h"

#include <ATen/ops/add.h>
#include <ATen/ops/alpha_dropout.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>

#include "runtime/capture/capture.h"
#include "runtime/graph/run/program.h"
#include "runtime/graph/run/random_turn.h"
#include "runtime/testing/refusal.h"

namespace plumbline::conformance {
namespace {

using Tensors = std::vector<at::Tensor>;

struct Module : torch::nn::Module {
  at::Tensor w = register_parameter("w", at::ones({2, 3}));
  at::Tensor count = register_buffer("count", at::zeros({}));
};

graph::Graph graph_of(const std::function<at::Tensor(Module&, at::Tensor)>& forward,
                      const at::Tensor& x = at::ones({2, 3})) {
  Module module;
  return capture::capture(module, [&](const Tensors& in) { return Tensors{forward(module, in[0])}; }, {{"x", x}});
}

PortableStage lowered(const std::function<at::Tensor(Module&, at::Tensor)>& forward) {
  return portable_stage(graph_of(forward), "here");
}

/// "aten::relu{self: %3} -> 4; ... return 4".
std::string text(const PortableStage& stage) {
  std::string text;
  for (const PortableNode& node : stage.nodes) {
    text += node.op + node.arguments.dump() + " -> " + Json(node.results).dump() + "; ";
  }
  return text + "return " + Json(stage.outputs).dump();
}

// Values: x is 0, w is 1, count is 2 if they are used; an unused parameter or buffer has no value.
TEST(PortableStage, InPlaceCallsBecomeNewValues) {
  EXPECT_EQ(text(lowered([](Module& m, at::Tensor x) {
              at::Tensor y = at::mul(x, m.w);
              y.add_(x);
              return at::relu(y);
            })),
            R"(aten::mul.Tensor{"self":{"value":0},"other":{"value":1}} -> [2]; )"
            R"(aten::add.Tensor{"self":{"value":2},"other":{"value":0},"alpha":1} -> [3]; )"
            R"(aten::relu{"self":{"value":3}} -> [4]; return [4])");
}

TEST(PortableStage, AnAliasChangesWithItsTensor) {
  EXPECT_EQ(text(lowered([](Module& m, at::Tensor x) {
              const at::Tensor y = at::mul(x, m.w);
              const at::Tensor same = y.contiguous();
              y.add_(x);
              return at::relu(same);
            })),
            R"(aten::mul.Tensor{"self":{"value":0},"other":{"value":1}} -> [2]; )"
            R"(aten::add.Tensor{"self":{"value":2},"other":{"value":0},"alpha":1} -> [3]; )"
            R"(aten::relu{"self":{"value":3}} -> [4]; return [4])");
}

TEST(PortableStage, ACopyDoesNotChange) {
  EXPECT_EQ(text(lowered([](Module& m, at::Tensor x) {
              const at::Tensor y = at::mul(x, m.w);
              const at::Tensor copy = y.clone();
              y.add_(x);
              return at::relu(copy);
            })),
            R"(aten::mul.Tensor{"self":{"value":0},"other":{"value":1}} -> [2]; )"
            R"(aten::add.Tensor{"self":{"value":2},"other":{"value":0},"alpha":1} -> [3]; )"
            R"(aten::relu{"self":{"value":2}} -> [4]; return [4])");
}

TEST(PortableStage, RefusesAChangeSeenThroughAnotherView) {
  testing::expect_part(testing::refusal([] {
                         lowered([](Module& m, at::Tensor x) {
                           const at::Tensor y = at::mul(x, m.w);
                           y.select(0, 0).add_(1.0);
                           return at::relu(y);
                         });
                       }),
                       "here: ");
}

TEST(PortableStage, RefusesAChangeOfAnAttributeThroughAViewThatNothingReadsLater) {
  const std::string of_buffer = testing::refusal([] {
    lowered([](Module& m, at::Tensor x) {
      m.count.view({1}).add_(2.5);
      return at::mul(x, m.w);
    });
  });
  testing::expect_line(of_buffer, "here: a change of 'count' through another view has no form in opset");
  const std::string of_parameter = testing::refusal([] {
    lowered([](Module& m, at::Tensor x) {
      m.w.detach().select(0, 0).mul_(2.0);
      return at::relu(x);
    });
  });
  testing::expect_line(of_parameter, "here: a change of 'w' through another view has no form in opset");
}

TEST(PortableStage, BuffersAreResults) {
  const PortableStage stage = lowered([](Module& m, at::Tensor x) {
    m.count.add_(2.5);
    return at::mul(x, m.count);
  });
  EXPECT_EQ(text(stage), R"(aten::add.Tensor{"self":{"value":1},"other":2.5,"alpha":1} -> [2]; )"
                         R"(aten::mul.Tensor{"self":{"value":0},"other":{"value":2}} -> [3]; return [3])");
  ASSERT_EQ(stage.buffer_updates.size(), 1u);
  EXPECT_EQ(stage.buffer_updates[0].name, "count");
  EXPECT_EQ(stage.buffer_updates[0].value, 2);
}

TEST(PortableStage, RunningStatisticsAreResultsInTraining) {
  torch::nn::BatchNorm2d norm(2);
  const auto forward = [&](const Tensors& in) { return Tensors{norm->forward(in[0])}; };
  const at::Tensor x = at::ones({2, 2, 3, 3});
  const PortableStage training = portable_stage(capture::capture(*norm, forward, {{"x", x}}), "here");
  EXPECT_EQ(training.nodes.back().results.size(), 3u);
  EXPECT_EQ(training.buffer_updates.size(), 3u);  // and num_batches_tracked
  norm->eval();
  const PortableStage evaluation = portable_stage(capture::capture(*norm, forward, {{"x", x}}), "here");
  EXPECT_EQ(evaluation.nodes.back().results.size(), 1u);
  EXPECT_TRUE(evaluation.buffer_updates.empty());
}

TEST(PortableStage, WithoutGradientsMeansDetached) {
  EXPECT_EQ(text(lowered([](Module& m, at::Tensor x) {
              at::Tensor y;
              {
                const at::NoGradGuard guard;
                y = at::mul(x, m.w);
              }
              return at::add(y, m.w);
            })),
            R"(aten::mul.Tensor{"self":{"value":0},"other":{"value":1}} -> [2]; )"
            R"(aten::detach{"self":{"value":2}} -> [3]; )"
            R"(aten::add.Tensor{"self":{"value":3},"other":{"value":1},"alpha":1} -> [4]; return [4])");
}

TEST(PortableStage, ViewsAreReshapesAndPermutations) {
  EXPECT_EQ(text(lowered([](Module&, at::Tensor x) { return x.t().view({3, 1, 2}).transpose(-1, 0).unsqueeze(0); })),
            R"(aten::permute{"self":{"value":0},"dims":[1,0]} -> [1]; )"
            R"(aten::reshape{"self":{"value":1},"shape":[3,1,2]} -> [2]; )"
            R"(aten::permute{"self":{"value":2},"dims":[2,1,0]} -> [3]; )"
            R"(aten::reshape{"self":{"value":3},"shape":[1,2,1,3]} -> [4]; return [4])");
}

TEST(PortableStage, RefusesOperatorsOutsideTheOpset) {
  testing::expect_part(
      testing::refusal([] { lowered([](Module&, at::Tensor x) { return std::get<0>(at::sort(x)); }); }),
      "here: aten::sort has no form in opset");
  testing::expect_part(
      testing::refusal([] { lowered([](Module&, at::Tensor x) { return at::alpha_dropout(x, 0.5, true); }); }),
      "random numbers");
}

TEST(PortableStage, DropoutIsAMultiplicationByAMask) {
  const auto forward = [](Module& m, at::Tensor x) {
    return at::dropout(at::gelu(at::dropout(at::mul(x, m.w), 0.5, true)), 0.25, true);
  };
  const at::Tensor x = at::randn({2, 3});
  const graph::Graph graph = graph_of(forward, x);
  const PortableStage stage = portable_stage(graph, "here");
  ASSERT_EQ(stage.masks.size(), 2u);
  EXPECT_NE(stage.masks[0].name, stage.masks[1].name);
  EXPECT_EQ(stage.nodes.back().op, "aten::mul.Tensor");

  Tensors dropped, drawn;
  {
    const graph::RandomTurn seeded(7);
    graph::Program(graph).run(Tensors{x}, dropped);
  }
  {
    const graph::RandomTurn seeded(7);
    graph::Program(with_masks_as_outputs(graph)).run(Tensors{x}, drawn);
  }
  ASSERT_EQ(drawn.size(), 3u);
  EXPECT_TRUE(drawn[0].equal(dropped[0]));
  Module module;
  EXPECT_TRUE(at::mul(at::gelu(at::mul(at::mul(x, module.w), drawn[1])), drawn[2]).equal(dropped[0]));
}

TEST(PortableStage, DrawnNumbersAreInputs) {
  const at::Tensor x = at::randn({2, 3});
  const graph::Graph graph =
      graph_of([](Module& m, at::Tensor y) { return at::add(at::mul(y, m.w), at::rand_like(y)); }, x);
  EXPECT_EQ(text(portable_stage(graph, "here")),
            R"(aten::mul.Tensor{"self":{"value":0},"other":{"value":1}} -> [3]; )"
            R"(aten::add.Tensor{"self":{"value":3},"other":{"value":2},"alpha":1} -> [4]; return [4])");
  Tensors drawn;
  const graph::RandomTurn seeded(7);
  graph::Program(with_masks_as_outputs(graph)).run(Tensors{x}, drawn);
  EXPECT_TRUE(at::add(x, drawn.at(1)).equal(drawn.at(0)));
}

}  // namespace
}  // namespace plumbline::conformance
