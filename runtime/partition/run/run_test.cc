#include "runtime/partition/run/run.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <atomic>
#include <thread>

#include "runtime/error.h"
#include "runtime/graph/run/random_turn.h"
#include "runtime/partition/budget/memory.h"
#include "runtime/partition/testing/hand_trace.h"
#include "runtime/partition/testing/run_testing.h"
#include "runtime/partition/trace/joint_argument.h"
#include "runtime/testing/allocation_count.h"
#include "runtime/testing/leaf.h"
#include "runtime/testing/refusal.h"
#include "runtime/types/aten.h"

namespace plumbline::partition {
namespace {

using testing::dtype;
using testing::expect_same_bits;
using testing::flag;
using testing::HandTrace;
using testing::leaf;
using testing::list;
using testing::node;
using testing::none;
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

/// What is drawn again is the same mask, and whoever draws next does not notice.
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
TEST(LoweredGraph, BindsWhateverASchemaTakes) {
  HandTrace trace;
  at::manual_seed(5);
  const at::Tensor x = leaf({4, 6}), gain = leaf({6}), x2 = copy_of(x), gain2 = copy_of(gain);
  const NodeIndex pg = trace.attribute(graph::AttributeKind::Parameter, "gain", gain), px = trace.input(x);
  const NodeIndex tangent = trace.tangent(0, at::empty({4, 7}));
  const NodeIndex norm =
      trace.call("aten::native_layer_norm", {node(px), list({number(6)}), node(pg), none(), number(1e-5)});
  const NodeIndex y = trace.item(norm, 0), mean = trace.item(norm, 1), rstd = trace.item(norm, 2);
  const NodeIndex parts = trace.call("aten::split", "Tensor", {node(y), number(2), number(1)});
  const NodeIndex a = trace.item(parts, 0), b = trace.item(parts, 2);
  const NodeIndex wide = trace.call("aten::_to_copy", {node(a)}, {{"dtype", dtype(types::Dtype::Float64)}});
  const NodeIndex narrow = trace.call("aten::_to_copy", {node(wide)}, {{"dtype", dtype(types::Dtype::Float32)}});
  const NodeIndex total = trace.call("aten::sum", "dim_IntList", {node(y), number(1), flag(true)});
  const NodeIndex tripled = trace.call("aten::mul", "Tensor", {node(b), number(3.0)});
  const NodeIndex joined =
      trace.call("aten::cat", {list({node(narrow), node(tripled), node(total), node(a)}), number(1)});
  const NodeIndex out = joined;
  const auto columns = [&](int begin, int end) {
    return trace.call("aten::slice", "Tensor", {node(tangent), number(1), number(begin), number(end)});
  };
  const NodeIndex ga = trace.call("aten::add", "Tensor", {node(columns(0, 2)), node(columns(5, 7))});
  const NodeIndex gb = trace.call("aten::mul", "Tensor", {node(columns(2, 4)), number(3.0)});
  const NodeIndex zero = trace.call("aten::zeros", {list({number(4), number(2)})});
  const NodeIndex spread = trace.call("aten::cat", {list({node(ga), node(zero), node(gb)}), number(1)});
  const NodeIndex sums = trace.call("aten::expand", {node(columns(4, 5)), list({number(4), number(6)})});
  const NodeIndex gy = trace.call("aten::add", "Tensor", {node(sums), node(spread)});
  const NodeIndex back =
      trace.call("aten::native_layer_norm_backward", {node(gy), node(px), list({number(6)}), node(mean), node(rstd),
                                                      node(pg), none(), list({flag(true), flag(true), flag(false)})});
  const NodeIndex gx = trace.item(back, 0), gg = trace.item(back, 1);
  trace.finish({out}, {gg, gx});
  PartitionedGraph graph = trace.partitioned({mean, rstd});
  Tensors outputs;
  graph.run(Tensors{x}, outputs);
  const at::Tensor y2 = at::layer_norm(x2, {6}, gain2);
  const std::vector<at::Tensor> split = y2.split(2, 1);
  const at::Tensor expected =
      at::cat({split[0].to(at::kDouble).to(at::kFloat), split[2] * 3.0, y2.sum(1, true), split[0]}, 1);
  expect_same_bits(outputs[0], expected, "output");
  const at::Tensor grad = at::randn({4, 7});
  outputs[0].backward(grad);
  expected.backward(grad);
  expect_same_bits(x.grad(), x2.grad(), "x");
  expect_same_bits(gain.grad(), gain2.grad(), "gain");
}

TEST(LoweredGraph, SaysWhatCannotBeExecuted) {
  const auto refusal_of = [](const std::string& op, const std::string& overload, HandTrace::Arguments arguments,
                             HandTrace::Keywords keywords = {}) {
    HandTrace trace;
    const NodeIndex x = trace.input(at::ones({2}));
    for (JointArgument& argument : arguments)
      if (argument.kind == JointArgument::Kind::Node) argument.node = x;
    return testing::refusal([&] { trace.call(op, overload, arguments, keywords); });
  };
  EXPECT_EQ(refusal_of("aten::nonsense", "default", {}),
            "node '' (aten::nonsense) cannot be executed: this LibTorch has no operator aten::nonsense.default");
  EXPECT_EQ(refusal_of("aten::relu", "default", {text("x")}),
            "node '' (aten::relu) cannot be executed: argument 'self' is a string, where Tensor is expected");
  EXPECT_EQ(refusal_of("aten::relu", "default", {node(0), node(0)}),
            "node '' (aten::relu) cannot be executed: 2 arguments are too many for it");
  EXPECT_EQ(refusal_of("aten::relu", "default", {}),
            "node '' (aten::relu) cannot be executed: argument 'self' is missing");
  EXPECT_EQ(refusal_of("aten::relu", "default", {node(0)}, {{"inplace", flag(true)}}),
            "node '' (aten::relu) cannot be executed: it takes no further argument 'inplace'");
}

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

/// A chain of eight values, none saved: two are alive at a time in the forward, and a saved one goes as soon as it was
/// used.
TEST(LoweredGraph, AValueIsReleasedAtItsLastUse) {
  constexpr int64_t kBytes = 4 * 1024;
  HandTrace trace;
  const at::Tensor x = leaf({1024});
  const NodeIndex px = trace.input(x);
  const NodeIndex tangent = trace.tangent(0, x);
  std::vector<NodeIndex> saved = {px};
  for (int i = 0; i < 8; ++i) saved.push_back(trace.call("aten::exp", {node(saved.back())}));
  NodeIndex grad = tangent;
  for (int i = 8; i > 0; --i) grad = trace.call("aten::mul", "Tensor", {node(grad), node(saved[i])});
  trace.finish({saved.back()}, {grad});
  saved.erase(saved.begin());
  for (const bool all : {true, false}) {
    PartitionedGraph graph = trace.partitioned(all ? saved : std::vector<NodeIndex>());
    Tensors outputs;
    testing::AllocationCount allocated;
    graph.run(Tensors{x}, outputs);
    EXPECT_EQ(allocated.alive(), (all ? 8 : 1) * kBytes);
    EXPECT_EQ(allocated.peak(), (all ? 8 : 2) * kBytes);
    if (!all) continue;
    // The output leaves with its gradient; then each step frees a saved value and a gradient, and makes one.
    allocated.restart();
    outputs[0].backward(at::ones({1024}));
    EXPECT_LE(allocated.peak(), 11 * kBytes);
    outputs.clear();
    EXPECT_EQ(allocated.alive(), kBytes) << "the gradient of x";
  }
}

/// softmax(x) and w, with gradients w: 3 g (where it is an output) and x: the softmax's of 3 g. What nobody reads any
/// more makes room for the result, in the same bits; what somebody has is left alone.
TEST(LoweredGraph, ASoftmaxsGradientIsWrittenOverTheOneItIsMadeOf) {
  constexpr int64_t kRows = 37, kColumns = 45;
  for (const bool log : {false, true})
    for (const int64_t dim : {-1, 0})
      for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16})
        for (const bool returned : {false, true}) {
          SCOPED_TRACE(::testing::Message() << log << dim << type << returned);
          HandTrace trace;
          at::manual_seed(9);
          const at::Tensor x = at::randn({kRows, kColumns}).to(type).requires_grad_(), x2 = copy_of(x);
          const at::Tensor w = at::randn({kRows, kColumns}).to(type).requires_grad_(), grad = at::randn_like(x);
          const NodeIndex pw = trace.attribute(graph::AttributeKind::Parameter, "w", w), px = trace.input(x);
          const NodeIndex tangent = trace.tangent(0, x);
          const std::string name = log ? "aten::_log_softmax" : "aten::_softmax";
          const NodeIndex y = trace.call(name, {node(px), number(dim), flag(false)});
          const NodeIndex tripled = trace.call("aten::mul", "Tensor", {node(tangent), number(3.0)});
          const NodeIndex gx =
              trace.call(name + "_backward_data", {node(tripled), node(y), number(dim), dtype(types::from_aten(type))});
          trace.finish({y}, {returned ? tripled : kNoNode, gx});
          (void)pw;
          PartitionedGraph graph = trace.partitioned({y});
          Tensors outputs;
          std::optional<testing::AllocationCount> allocated;
          for (const bool measured : {false, true}) {  // the first backward also makes its runner
            x.mutable_grad() = w.mutable_grad() = at::Tensor();
            graph.run(Tensors{x}, outputs);
            if (measured) allocated.emplace();
            outputs[0].backward(grad);
          }
          const int64_t alive = allocated->alive(), peak = allocated->peak();
          allocated.reset();
          const at::Tensor y2 = log ? at::log_softmax(x2, dim) : at::softmax(x2, dim);
          y2.backward(grad * 3.0);
          expect_same_bits(x.grad(), x2.grad(), "x");
          if (returned) expect_same_bits(w.grad(), grad * 3.0, "w");
          const auto bytes = static_cast<int64_t>(x.nbytes());
          EXPECT_EQ(alive, (returned ? 2 : 1) * bytes);
          if (type != at::kBFloat16) {
            // Without, twice as much; bf16's kernel has a buffer of its own. The 3.0 is cast to what it multiplies.
            EXPECT_LE(peak, (returned ? 2 : 1) * bytes + 8);
          }
          // With the output, which the caller holds.
          EXPECT_EQ(simulate_memory(graph.partition(), /*overwriting=*/true).bytes.back(), (returned ? 3 : 2) * bytes);
          EXPECT_EQ(simulate_memory(graph.partition()).bytes.back(), 3 * bytes);
        }
}

}  // namespace
}  // namespace plumbline::partition
