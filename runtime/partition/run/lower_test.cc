// Joint graphs lowered to programs: what a call's schema takes, the memory that a run holds, and refusals.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <optional>

#include "runtime/partition/budget/memory.h"
#include "runtime/partition/run/bind_call.h"
#include "runtime/partition/run/run.h"
#include "runtime/partition/testing/hand_trace.h"
#include "runtime/partition/testing/run_testing.h"
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

at::Tensor leaf_like(const at::Tensor& tensor) {
  return tensor.detach().clone().requires_grad_(tensor.requires_grad());
}

TEST(LoweredGraph, BindsWhateverASchemaTakes) {
  HandTrace trace;
  at::manual_seed(5);
  const at::Tensor x = leaf({4, 6}), gain = leaf({6}), x2 = leaf_like(x), gain2 = leaf_like(gain);
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
  std::vector<at::Tensor> outputs;
  graph.run(std::vector<at::Tensor>{x}, outputs);
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
            "node '' (aten::relu) cannot be executed: the operator has no argument 'inplace'");
  EXPECT_EQ(refusal_of("aten::relu", "default", {node(0)}, {{"self", node(0)}}),
            "node '' (aten::relu) cannot be executed: argument 'self' is given twice");
}

TEST(LoweredGraph, OneNumberStandsForEveryElementOfAListOfFixedLength) {
  HandTrace trace;
  const NodeIndex x = trace.input(at::ones({1, 4}));
  const auto bound = [&](const std::string& op, const JointArgument& argument) {
    JointNode call;
    call.op = op;
    call.args = {node(x), argument};
    return bind_call(trace.trace().graph, call).arguments.at(1).constant;
  };
  // int[2] padding
  EXPECT_EQ(bound("aten::reflection_pad1d", number(1)).toIntVector(), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(bound("aten::reflection_pad1d", list({number(1), number(2)})).toIntVector(), (std::vector<int64_t>{1, 2}));
  // int[] dims
  EXPECT_EQ(bound("aten::permute", number(0)).toIntVector(), (std::vector<int64_t>{0}));
  EXPECT_EQ(testing::refusal([&] { bound("aten::permute", text("x")); }),
            "node '' (aten::permute) cannot be executed: argument 'dims' is a string, where List[int] is expected");
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
    std::vector<at::Tensor> outputs;
    testing::AllocationCount allocated;
    graph.run(std::vector<at::Tensor>{x}, outputs);
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

/// softmax(x) and w, with gradients w: 3 g (where it is an output) and x: the softmax's of 3 g. A value
/// without further readers makes room for the result, in the same bits; a value that is still read is left alone.
TEST(LoweredGraph, ASoftmaxsGradientIsWrittenOverTheOneItIsMadeOf) {
  constexpr int64_t kRows = 37, kColumns = 45;
  for (const bool log : {false, true})
    for (const int64_t dim : {-1, 0})
      for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16})
        for (const bool returned : {false, true}) {
          SCOPED_TRACE(::testing::Message() << log << dim << type << returned);
          HandTrace trace;
          at::manual_seed(9);
          const at::Tensor x = at::randn({kRows, kColumns}).to(type).requires_grad_(), x2 = leaf_like(x);
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
          std::vector<at::Tensor> outputs;
          std::optional<testing::AllocationCount> allocated;
          for (const bool measured : {false, true}) {  // the first backward also makes its runner
            x.mutable_grad() = w.mutable_grad() = at::Tensor();
            graph.run(std::vector<at::Tensor>{x}, outputs);
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
