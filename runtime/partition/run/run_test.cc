#include "runtime/partition/run/run.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <atomic>
#include <thread>

#include "runtime/error.h"
#include "runtime/graph/run/random_turn.h"
#include "runtime/partition/testing/hand_trace.h"
#include "runtime/partition/testing/run_testing.h"
#include "runtime/partition/trace/joint_argument.h"
#include "runtime/testing/leaf.h"
#include "runtime/testing/refusal.h"

namespace plumbline::partition {
namespace {

using testing::expect_same_bits;
using testing::HandTrace;
using testing::leaf;
using testing::list;
using testing::node;
using testing::number;
using testing::text;
using Tensors = std::vector<at::Tensor>;

at::Tensor copy_of(const at::Tensor& tensor) { return tensor.detach().clone().requires_grad_(tensor.requires_grad()); }

/// gelu(x @ w) @ v, once by autograd and once by hand.
struct TwoLayers {
  TwoLayers() {
    at::manual_seed(7);
    x = leaf({6, 4}), w = leaf({4, 8}), v = leaf({8, 3});
    for (const at::Tensor* tensor : {&x, &w, &v}) plain.push_back(copy_of(*tensor));
    using enum graph::AttributeKind;
    const NodeIndex pw = trace.attribute(Parameter, "w", w), pv = trace.attribute(Parameter, "v", v),
                    px = trace.input(x);
    const NodeIndex tangent = trace.tangent(0, at::empty({6, 3}));
    mm = trace.call("aten::mm", {node(px), node(pw)});
    gelu = trace.call("aten::gelu", {node(mm)});
    const NodeIndex out = trace.call("aten::mm", {node(gelu), node(pv)});
    const NodeIndex gelu_t = trace.call("aten::t", {node(gelu)});
    const NodeIndex grad_v = trace.call("aten::mm", {node(gelu_t), node(tangent)});
    v_t = trace.call("aten::t", {node(pv)});
    const NodeIndex grad_gelu = trace.call("aten::mm", {node(tangent), node(v_t)});
    const NodeIndex grad_mm =
        trace.call("aten::gelu_backward", {node(grad_gelu), node(mm)}, {{"approximate", text("none")}});
    const NodeIndex x_t = trace.call("aten::t", {node(px)});
    const NodeIndex grad_w = trace.call("aten::mm", {node(x_t), node(grad_mm)});
    const NodeIndex w_t = trace.call("aten::t", {node(pw)});
    const NodeIndex grad_x = trace.call("aten::mm", {node(grad_mm), node(w_t)});
    trace.finish({out}, {grad_w, grad_v, grad_x});
  }
  at::Tensor expected() { return at::gelu(plain[0].mm(plain[1])).mm(plain[2]); }

  HandTrace trace;
  NodeIndex mm, gelu, v_t;
  at::Tensor x, w, v;
  Tensors plain;
};

TEST(PartitionedGraph, GradientsHaveAutogradsBitsWhateverIsSaved) {
  for (int choice = 0; choice < 4; ++choice) {
    TwoLayers model;
    const std::vector<NodeIndex> saved = choice == 0   ? std::vector<NodeIndex>{model.mm, model.gelu}
                                         : choice == 1 ? std::vector<NodeIndex>{model.mm}
                                         : choice == 2 ? std::vector<NodeIndex>{model.mm, model.v_t}
                                                       : std::vector<NodeIndex>{};
    PartitionedGraph graph = model.trace.partitioned(saved);
    for (int step = 0; step < 2; ++step) {
      Tensors outputs;
      graph.run(Tensors{model.x}, outputs);
      const at::Tensor expected = model.expected();
      expect_same_bits(outputs[0], expected, "output");
      const at::Tensor grad = at::randn({6, 3});
      outputs[0].backward(grad);
      expected.backward(grad);
      expect_same_bits(model.x.grad(), model.plain[0].grad(), "x");
      expect_same_bits(model.w.grad(), model.plain[1].grad(), "w");
      expect_same_bits(model.v.grad(), model.plain[2].grad(), "v");
    }
  }
}

/// The gradient of a sum is one number, expanded: no view of it has another shape, so what was traced as a view of a
/// dense gradient has to copy.
TEST(PartitionedGraph, AnExpandedGradientIsTakenWhereADenseOneWasTraced) {
  HandTrace trace;
  const at::Tensor w = leaf({4}), x = leaf({2, 3, 4}), w2 = copy_of(w), x2 = copy_of(x);
  const NodeIndex pw = trace.attribute(graph::AttributeKind::Parameter, "w", w), px = trace.input(x);
  const NodeIndex tangent = trace.tangent(0, at::empty({6}));
  const NodeIndex rows = trace.call("aten::view", {node(px), list({number(6), number(4)})});
  const NodeIndex out = trace.call("aten::mv", {node(rows), node(pw)});
  const NodeIndex column = trace.call("aten::view", {node(tangent), list({number(6), number(1)})});
  const NodeIndex grad_rows = trace.call("aten::mul", "Tensor", {node(column), node(pw)});
  const NodeIndex grad_x = trace.call("aten::view", {node(grad_rows), list({number(2), number(3), number(4)})});
  const NodeIndex rows_t = trace.call("aten::t", {node(rows)});
  const NodeIndex halved = trace.call("aten::view", {node(tangent), list({number(2), number(3)})});
  const NodeIndex flat = trace.call("aten::view", {node(halved), list({number(6)})});
  const NodeIndex grad_w = trace.call("aten::mv", {node(rows_t), node(flat)});
  trace.finish({out}, {grad_w, grad_x});
  PartitionedGraph graph = trace.partitioned({});
  Tensors outputs;
  graph.run(Tensors{x}, outputs);
  outputs[0].sum().backward();
  x2.view({6, 4}).mv(w2).sum().backward();
  expect_same_bits(x.grad(), x2.grad(), "x");
  expect_same_bits(w.grad(), w2.grad(), "w");
}

/// The second draw gives the same mask, and leaves the generator as it was.
TEST(PartitionedGraph, ARandomCallThatRunsTwiceDrawsTheSame) {
  HandTrace trace;
  at::manual_seed(3);
  const at::Tensor x = leaf({50}), x2 = copy_of(x);
  const NodeIndex px = trace.input(x);
  const NodeIndex tangent = trace.tangent(0, x);
  const NodeIndex half = trace.call("aten::full", {list({number(50)}), number(0.5)});
  const NodeIndex mask = trace.call("aten::bernoulli", {node(half)});
  const NodeIndex again = trace.call("aten::bernoulli", {node(half)});
  const NodeIndex both = trace.call("aten::add", "Tensor", {node(mask), node(again)});
  const NodeIndex out = trace.call("aten::mul", "Tensor", {node(px), node(both)});
  const NodeIndex grad = trace.call("aten::mul", "Tensor", {node(tangent), node(both)});
  trace.finish({out}, {grad});
  PartitionedGraph graph = trace.partitioned({});
  ASSERT_EQ(graph.partition().replayed.size(), 2U);
  Tensors outputs;
  at::manual_seed(11);
  graph.run(Tensors{x}, outputs);
  const at::Tensor state = graph::random_state();
  outputs[0].backward(at::ones({50}));
  expect_same_bits(graph::random_state(), state, "generator");
  at::manual_seed(11);
  const at::Tensor masks = at::full({50}, 0.5).bernoulli() + at::full({50}, 0.5).bernoulli();
  (x2 * masks).backward(at::ones({50}));
  expect_same_bits(outputs[0], x2 * masks, "output");
  expect_same_bits(x.grad(), x2.grad(), "gradient");
}

/// Calls with several results, with a list of them, with lists of tensors, dtypes and keyword arguments.
/// out = (x * w, x + w): the first output has no gradient. Its part of the backward must not run, nor leave a trace:
/// zeros in its place would turn -0.0 into 0.0.
TEST(PartitionedGraph, AnOutputWithoutAGradientAddsNothing) {
  HandTrace trace;
  const at::Tensor w = leaf({3}), x = leaf({3}), w2 = copy_of(w), x2 = copy_of(x);
  const NodeIndex pw = trace.attribute(graph::AttributeKind::Parameter, "w", w), px = trace.input(x);
  const NodeIndex t0 = trace.tangent(0, x), t1 = trace.tangent(1, x);
  const NodeIndex product = trace.call("aten::mul", "Tensor", {node(px), node(pw)});
  const NodeIndex sum = trace.call("aten::add", "Tensor", {node(px), node(pw)});
  const NodeIndex px_part = trace.call("aten::mul", "Tensor", {node(t0), node(pw)});
  const NodeIndex pw_part = trace.call("aten::mul", "Tensor", {node(t0), node(px)});
  const NodeIndex gx = trace.call("aten::add", "Tensor", {node(t1), node(px_part)});
  const NodeIndex gw = trace.call("aten::add", "Tensor", {node(t1), node(pw_part)});
  trace.finish({product, sum}, {gw, gx});
  PartitionedGraph graph = trace.partitioned({});
  const at::Tensor grad = at::tensor({-0.0F, 1.0F, std::numeric_limits<float>::infinity()});
  for (const bool first : {false, true}) {
    Tensors outputs;
    graph.run(Tensors{x}, outputs);
    const at::Tensor product2 = x2 * w2, sum2 = x2 + w2;
    (first ? outputs[0] : outputs[1]).backward(grad);
    (first ? product2 : sum2).backward(grad);
    expect_same_bits(x.grad(), x2.grad(), "x");
    expect_same_bits(w.grad(), w2.grad(), "w");
    for (const at::Tensor* tensor : {&x, &w, &x2, &w2}) tensor->mutable_grad() = at::Tensor();
  }
}

/// A call that takes the gradients of two outputs together gets zeros for the one that has none.
TEST(PartitionedGraph, AGradientThatIsMissingAmongOthersIsZeros) {
  HandTrace trace;
  const at::Tensor x = leaf({4}), x2 = copy_of(x);
  const NodeIndex px = trace.input(x);
  const NodeIndex t0 = trace.tangent(0, at::empty({2})), t1 = trace.tangent(1, at::empty({2}));
  const NodeIndex parts = trace.call("aten::split", "Tensor", {node(px), number(2)});
  const NodeIndex a = trace.item(parts, 0), b = trace.item(parts, 1);
  const NodeIndex twice = trace.call("aten::mul", "Tensor", {node(b), number(2.0)});
  const NodeIndex gb = trace.call("aten::mul", "Tensor", {node(t1), number(2.0)});
  const NodeIndex gx = trace.call("aten::cat", {list({node(t0), node(gb)})});
  trace.finish({a, twice}, {gx});
  PartitionedGraph graph = trace.partitioned({});
  for (const bool first : {false, true}) {
    Tensors outputs;
    graph.run(Tensors{x}, outputs);
    const std::vector<at::Tensor> split = x2.split(2);
    (first ? outputs[0] : outputs[1]).backward(at::ones({2}));
    (first ? split[0] : split[1] * 2.0).backward(at::ones({2}));
    expect_same_bits(x.grad(), x2.grad(), "x");
    x.mutable_grad() = x2.mutable_grad() = at::Tensor();
  }
}

/// Outputs: the input itself, a view of it, one value twice; a buffer is written at the end.
struct Corners {
  Corners() {
    x = leaf({4}), running = at::ones({4});
    const NodeIndex pr = trace.attribute(graph::AttributeKind::Buffer, "running", running), px = trace.input(x);
    const NodeIndex t0 = trace.tangent(0, x), t1 = trace.tangent(1, at::empty({2, 2})), t2 = trace.tangent(2, x),
                    t3 = trace.tangent(3, x);
    const NodeIndex view = trace.call("aten::view", {node(px), list({number(2), number(2)})});
    const NodeIndex product = trace.call("aten::mul", "Tensor", {node(px), node(pr)});
    const NodeIndex next = trace.call("aten::add", "Tensor", {node(pr), number(1.0)});
    const NodeIndex both = trace.call("aten::add", "Tensor", {node(t2), node(t3)});
    const NodeIndex g = trace.call("aten::mul", "Tensor", {node(both), node(pr)});
    const NodeIndex flat = trace.call("aten::view", {node(t1), list({number(4)})});
    const NodeIndex some = trace.call("aten::add", "Tensor", {node(t0), node(flat)});
    const NodeIndex gx = trace.call("aten::add", "Tensor", {node(some), node(g)});
    trace.finish({px, view, product, product}, {kNoNode, gx}, {{pr, next}});
  }
  HandTrace trace;
  at::Tensor x, running;
};

TEST(PartitionedGraph, InputsAndViewsMayBeOutputsAndBuffersAreWrittenAtTheEnd) {
  Corners corners;
  PartitionedGraph graph = corners.trace.partitioned({});
  for (int step = 1; step <= 2; ++step) {
    Tensors outputs;
    graph.run(Tensors{corners.x}, outputs);
    EXPECT_TRUE(at::equal(corners.running, at::full({4}, step + 1.0)));
    expect_same_bits(outputs[0], corners.x, "the input");
    expect_same_bits(outputs[3], corners.x * step, "the product");
    for (const at::Tensor& output : outputs) EXPECT_TRUE(output.requires_grad());
    const at::Tensor ones = at::ones({4});
    torch::autograd::backward(outputs, {ones, at::ones({2, 2}) * 10, ones * 100, ones * 1000});
    // The product's factor is the buffer before it was written.
    expect_same_bits(corners.x.grad(), at::full({4}, 11.0 + 1100.0 * step), "gradient");
    corners.x.mutable_grad() = at::Tensor();
  }
}

TEST(PartitionedGraph, WithoutGradientsItIsAPlainCall) {
  Corners corners;
  PartitionedGraph graph = corners.trace.partitioned({});
  const c10::NoGradGuard no_grad;
  Tensors outputs;
  graph.run(Tensors{corners.x}, outputs);
  EXPECT_FALSE(outputs[3].requires_grad());
  expect_same_bits(outputs[3], corners.x, "the product");
  EXPECT_TRUE(at::equal(corners.running, at::full({4}, 2.0)));
}

/// A change in place between forward and backward is noticed, of what is saved and of whatever it is a view of.
TEST(PartitionedGraph, AChangeInPlaceIsNoticed) {
  for (const bool view_only : {false, true}) {
    TwoLayers model;
    PartitionedGraph graph =
        model.trace.partitioned(view_only ? std::vector<NodeIndex>{model.mm, model.v_t} : std::vector{model.mm});
    Tensors outputs;
    graph.run(Tensors{model.x}, outputs);
    {
      const c10::NoGradGuard no_grad;
      model.v.add_(1);
    }
    EXPECT_THROW(outputs[0].backward(at::ones({6, 3})), c10::Error);
  }
}

TEST(PartitionedGraph, AnOutputChangedInPlaceIsNoticedWhereItIsSaved) {
  HandTrace trace;
  const at::Tensor x = leaf({4});
  const NodeIndex px = trace.input(x);
  const NodeIndex t0 = trace.tangent(0, at::empty({2, 2}));
  const NodeIndex y = trace.call("aten::exp", {node(px)});
  const NodeIndex out = trace.call("aten::view", {node(y), list({number(2), number(2)})});
  const NodeIndex flat = trace.call("aten::view", {node(t0), list({number(4)})});
  const NodeIndex gx = trace.call("aten::mul", "Tensor", {node(flat), node(y)});
  trace.finish({out}, {gx});
  PartitionedGraph graph = trace.partitioned({y});
  Tensors outputs;
  graph.run(Tensors{x}, outputs);
  outputs[0].detach().add_(1);
  EXPECT_THROW(outputs[0].backward(at::ones({2, 2})), c10::Error);
}

TEST(PartitionedGraph, AGraphIsRunOnceUnlessItIsRetained) {
  TwoLayers model;
  PartitionedGraph graph = model.trace.partitioned({model.mm});
  Tensors outputs;
  graph.run(Tensors{model.x}, outputs);
  const at::Tensor grad = at::randn({6, 3});
  outputs[0].backward(grad, /*retain_graph=*/true);
  const at::Tensor once = model.x.grad().clone();
  model.x.mutable_grad() = at::Tensor();
  outputs[0].backward(grad);
  expect_same_bits(model.x.grad(), once, "the second time");
  EXPECT_THROW(outputs[0].backward(grad), c10::Error);
}

TEST(PartitionedGraph, HasNoSecondDerivative) {
  TwoLayers model;
  PartitionedGraph graph = model.trace.partitioned({model.mm});
  Tensors outputs;
  graph.run(Tensors{model.x}, outputs);
  EXPECT_EQ(testing::failure([&] {
              torch::autograd::grad({outputs[0].sum()}, {model.x}, {}, /*retain_graph=*/true, /*create_graph=*/true);
            }),
            "a partitioned graph has no second derivative; leave create_graph out");
}

/// A gradient in the memory of a saved value is copied: autograd keeps what it is given and adds to it.
TEST(PartitionedGraph, AGradientThatIsASavedValueIsACopy) {
  HandTrace trace;
  const at::Tensor x = leaf({4}), w = leaf({4});
  const NodeIndex pw = trace.attribute(graph::AttributeKind::Parameter, "w", w), px = trace.input(x);
  const NodeIndex tangent = trace.tangent(0, at::empty({4}));
  const NodeIndex out = trace.call("aten::mul", "Tensor", {node(px), node(pw)});
  const NodeIndex gx = trace.call("aten::mul", "Tensor", {node(tangent), node(pw)});
  trace.finish({out}, {px, gx});
  PartitionedGraph graph = trace.partitioned({});
  const at::Tensor before = x.detach().clone();
  for (int step = 0; step < 2; ++step) {
    Tensors outputs;
    graph.run(Tensors{x}, outputs);
    outputs[0].backward(at::ones({4}));
  }
  expect_same_bits(x, before, "the input");
  expect_same_bits(w.grad(), 2 * before, "gradient");
}

TEST(PartitionedGraph, ThreadsRunItAtTheSameTime) {
  HandTrace trace;
  const NodeIndex px = trace.input(leaf({64})), tangent = trace.tangent(0, at::empty({64}));
  const NodeIndex y = trace.call("aten::exp", {node(px)});
  trace.finish({y}, {trace.call("aten::mul", "Tensor", {node(tangent), node(y)})});
  PartitionedGraph graph = trace.partitioned({y});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, x = leaf({64}), grad = at::randn({64})] {
      for (int i = 0; i < 100; ++i) {
        Tensors outputs;
        graph.run(Tensors{x}, outputs);
        outputs[0].backward(grad);
        wrong += !at::equal(outputs[0], at::exp(x)) || !at::equal(x.grad(), grad * at::exp(x.detach()));
        x.mutable_grad() = at::Tensor();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace plumbline::partition
