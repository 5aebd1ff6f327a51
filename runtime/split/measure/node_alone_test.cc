// Nodes run by themselves get the same operands as in a run of the whole graph, and leave everything unchanged. Times
// are only checked to exist.
#include "runtime/split/measure/node_alone.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <cmath>

#include "runtime/capture/capture.h"
#include "runtime/error.h"
#include "runtime/graph/run/random_turn.h"
#include "runtime/graph/testing/parse.h"
#include "runtime/split/measure/node_times.h"
#include "runtime/testing/refusal.h"

namespace plumbline::split {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Writes in place, directly and through views, in buffers and activations; draws; reads under no_grad.
struct MeasuredNet : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor h = at::linear(x, weight, bias);
    h = at::batch_norm(h, {}, {}, mean, var, /*training=*/true, 0.1, 1e-5, false);
    count.add_(1);
    at::Tensor view = h.narrow(1, 0, 2);
    view.mul_(2);
    h.relu_();
    h = at::dropout(h, 0.5, true) + count;
    at::Tensor side;
    {
      const c10::NoGradGuard no_grad;
      side = h.t().clone().exp_();
    }
    const Tensors parts = at::split(h, 2, 1);
    return at::matmul(at::cat({parts[1], parts[0]}, 1), side).neg();
  }
  at::Tensor weight = register_parameter("weight", at::randn({4, 3}));
  at::Tensor bias = register_parameter("bias", at::randn({4}));
  at::Tensor mean = register_buffer("mean", at::randn({4}));
  at::Tensor var = register_buffer("var", at::rand({4}) + 0.5);
  at::Tensor count = register_buffer("count", at::zeros({}));
};

graph::Graph graph_of(MeasuredNet& net, const at::Tensor& x) {
  return capture::capture(net, [&](const Tensors& in) { return Tensors{net.forward(in[0])}; }, {{"x", x}});
}

/// Copies the operands of each node of a run.
class Operands : public graph::NodeObserver {
 public:
  explicit Operands(const graph::Graph& graph) : graph_(graph), seen(graph.nodes.size()) {}
  void before(size_t node, const graph::Frame& values) override {
    std::vector<char> known(graph_.values.size(), 0);
    graph::for_each_use(graph_.nodes[node], [&](graph::ValueId v) {
      if (!std::exchange(known[v], 1)) seen[node].push_back(values.value(v).toTensor().detach().clone());
    });
  }
  void after(size_t, const graph::Frame&) override {}

 private:
  const graph::Graph& graph_;

 public:
  std::vector<Tensors> seen;
};

TEST(NodeAlone, MeetsTheTensorsOfAWholeRunAndLeavesAllAsItWas) {
  at::manual_seed(3);
  MeasuredNet net;
  const at::Tensor x = at::randn({5, 3}).requires_grad_();
  const graph::Graph graph = graph_of(net, x);
  Tensors state = net.parameters();
  for (const at::Tensor& buffer : net.buffers()) state.push_back(buffer);
  state.push_back(x);
  Tensors before;
  for (const at::Tensor& tensor : state) before.push_back(tensor.detach().clone());
  const at::Tensor generator = at::detail::getDefaultCPUGenerator().get_state();
  const auto expect_untouched = [&](const std::string& by) {
    for (size_t i = 0; i < state.size(); ++i) {
      EXPECT_TRUE(at::equal(state[i], before[i])) << by << ": " << i;
      EXPECT_FALSE(state[i].grad().defined()) << by << ": " << i;
    }
    EXPECT_TRUE(at::equal(at::detail::getDefaultCPUGenerator().get_state(), generator)) << by;
  };
  // Running a node by itself draws from the generator as well; the run itself must still see consistent values. The
  // second turn checks that on the calls before the one that draws.
  for (const bool run_each : {false, true}) {
    SCOPED_TRACE(run_each);
    Operands whole(graph);
    std::vector<Tensors> alone_operands(graph.nodes.size());
    bool drawn = false;
    for_each_node_alone(graph, {x}, [&](size_t node, NodeAlone& alone) {
      drawn = drawn || graph::draws_random_numbers(graph.nodes[node]);
      if (run_each) {
        alone.forward();
        alone.backward(alone.ones());
      }
      if (run_each && drawn) return;
      for (const at::Tensor& operand : alone.operands()) alone_operands[node].push_back(operand.detach().clone());
    });
    expect_untouched("nodes alone");
    {
      const graph::RandomTurn kept;
      Tensors outputs;
      graph::Program(graph).run(Tensors{x}, outputs, &whole);
    }
    const c10::NoGradGuard no_grad;
    for (size_t i = 0; i < state.size(); ++i) state[i].copy_(before[i]);
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      if (run_each && alone_operands[n].empty()) continue;
      ASSERT_EQ(alone_operands[n].size(), whole.seen[n].size()) << "node " << n;
      for (size_t k = 0; k < whole.seen[n].size(); ++k)
        EXPECT_TRUE(at::equal(alone_operands[n][k], whole.seen[n][k])) << "operand " << k << " of node " << n;
    }
  }
  const std::vector<double> times = measure_node_times(graph, {x}, 2);
  expect_untouched("times");
  ASSERT_EQ(times.size(), graph.nodes.size());
  for (double seconds : times) EXPECT_TRUE(std::isfinite(seconds) && seconds > 0) << seconds;
}

TEST(NodeAlone, BackwardStartsWhereAResultRequiresAGradient) {
  at::manual_seed(3);
  MeasuredNet net;
  net.bias.requires_grad_(false);
  const at::Tensor x = at::randn({5, 3});
  const graph::Graph graph = graph_of(net, x);
  for_each_node_alone(graph, {x}, [&](size_t node, NodeAlone& alone) {
    alone.forward();
    size_t roots = 0;
    graph::for_each_definition(graph.nodes[node], [&](graph::ValueId v) { roots += graph.values[v].requires_grad; });
    EXPECT_EQ(alone.ones().size(), graph.nodes[node].grad_enabled ? roots : 0) << "node " << node;
    alone.backward(alone.ones());
  });
}

graph::Argument value_argument(graph::ValueId v) { return {graph::Argument::Kind::Value, {}, {v}}; }

graph::Node call_of(const char* name, const char* overload, std::vector<graph::Argument> arguments,
                    std::vector<graph::Result> results) {
  graph::Node node;
  node.op = c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
  node.arguments = std::move(arguments);
  node.results = std::move(results);
  return node;
}

TEST(NodeAlone, NumbersAndBranches) {
  // n = x.item(), ones of size n, and x negated if n > 2, else its absolute value.
  graph::Graph graph;
  const graph::ValueId x = graph.add_value({at::kLong, {}, false});
  const graph::ValueId n = graph.add_value({at::kLong, {}, false, -1, graph::ValueKind::Int});
  const graph::ValueId flag = graph.add_value({at::kBool, {}, false, -1, graph::ValueKind::Bool});
  const graph::ValueId ones = graph.add_value({at::kFloat, {3}, false});
  const graph::ValueId chosen = graph.add_value({at::kLong, {}, false});
  const graph::ValueId sum = graph.add_value({at::kFloat, {3}, false});
  graph.inputs = {{"x", x}};
  graph::Argument list{graph::Argument::Kind::NumberList, c10::impl::GenericList(c10::IntType::get()), {n}};
  list.constant.toList().push_back(0);
  graph.nodes.push_back(call_of("aten::item", "", {value_argument(x)}, {{false, {n}}}));
  graph.nodes.push_back(call_of("plumbline::number_gt", "",
                                {value_argument(n), {graph::Argument::Kind::Constant, 2, {}}}, {{false, {flag}}}));
  graph.nodes.push_back(call_of("aten::ones", "", {list, {}, {}, {}, {}}, {{false, {ones}}}));
  graph.nodes.push_back(call_of(
      "plumbline::cond", "", {value_argument(flag), {graph::Argument::Kind::TensorList, {}, {x}}}, {{true, {chosen}}}));
  for (const char* op : {"aten::neg", "aten::abs"}) {
    graph::Graph branch;
    const graph::ValueId in = branch.add_value({at::kLong, {}, false}), out = branch.add_value({at::kLong, {}, false});
    branch.inputs = {{"x", in}};
    branch.nodes.push_back(call_of(op, "", {value_argument(in)}, {{false, {out}}}));
    branch.outputs = {out};
    graph.nodes.back().branches.push_back(std::make_shared<const graph::Graph>(branch));
  }
  graph.nodes.push_back(
      call_of("aten::mul", "Tensor", {value_argument(ones), value_argument(chosen)}, {{false, {sum}}}));
  graph.outputs = {sum};
  for (const auto& [given, expected] : {std::pair{3, -3}, {2, 2}}) {
    size_t visited = 0;
    for_each_node_alone(graph, {at::scalar_tensor(given, at::kLong)}, [&](size_t node, NodeAlone& alone) {
      ++visited;
      alone.forward();
      if (node != 4) return;
      EXPECT_TRUE(at::equal(alone.operands()[0], at::ones({given})));
      EXPECT_EQ(alone.operands()[1].item<int>(), expected);
    });
    EXPECT_EQ(visited, 5u);
  }
}

/// A graph whose cond normalizes x in training, in either branch, and so writes the buffers `mean` and `var`.
graph::Graph conditional_statistics(const at::Tensor& mean, const at::Tensor& var) {
  graph::Graph graph;
  const graph::ValueId x = graph.add_value({at::kFloat, {5, 4}, false});
  const graph::ValueId flag = graph.add_value({at::kBool, {}, false});
  graph.inputs = {{"x", x}, {"flag", flag}};
  for (const auto& [name, tensor] : {std::pair{"mean", mean}, {"var", var}})
    graph.attributes.push_back(
        {graph::AttributeKind::Buffer, name, {}, true, tensor, graph.add_value({at::kFloat, {4}, false})});
  const graph::ValueId result = graph.add_value({at::kFloat, {5, 4}, false});
  graph.nodes.push_back(
      call_of("plumbline::cond", "",
              {value_argument(flag),
               {graph::Argument::Kind::TensorList, {}, {x, graph.attributes[0].value, graph.attributes[1].value}}},
              {{true, {result}}}));
  graph::Graph branch = graph::parse_graph(R"(input %0: f32[5,4] = "x"
input %1: f32[4] = "mean"
input %2: f32[4] = "var"
%3: f32[5,4] = aten::batch_norm(%0, None, None, %1, %2, True, 0.1, 1e-05, False)
return %3
)");
  for (int i = 0; i < 2; ++i) graph.nodes[0].branches.push_back(std::make_shared<const graph::Graph>(branch));
  graph.outputs = {result};
  return graph;
}

// The schema of a cond does not say that a branch writes.
TEST(NodeAlone, RestoresTheBuffersThatABranchWrites) {
  const at::Tensor mean = at::zeros({4}), var = at::ones({4});
  const graph::Graph graph = conditional_statistics(mean, var);
  for_each_node_alone(graph, {at::randn({5, 4}) + 3, at::scalar_tensor(true, at::kBool)},
                      [](size_t, NodeAlone& alone) { alone.forward(); });
  EXPECT_TRUE(at::equal(mean, at::zeros({4})));
  EXPECT_TRUE(at::equal(var, at::ones({4})));
}

// A parameter and a buffer in one storage, as flattened models have them, each with its own version.
TEST(NodeAlone, APendingBackwardSurvivesAWriteElsewhereInTheStorage) {
  const at::Tensor flat = at::randn({4});
  const at::Tensor weight = flat.variable_data().narrow(0, 0, 2).requires_grad_();
  graph::Graph graph = graph::parse_graph(R"(input %0: f32[2] = "x"
parameter %1: f32[2]* = "weight"
buffer %2: f32[2] = "total"
%3: f32[2] = aten::add_.Tensor(%2, %0, 1)
%4: f32[2]* = aten::mul.Tensor(%3, %1)
return %4
)");
  graph.attributes[0].tensor = weight;
  graph.attributes[1].tensor = flat.variable_data().narrow(0, 2, 2);
  const at::Tensor before = flat.clone(), loss = (weight * weight).sum();
  for_each_node_alone(graph, {at::ones({2})}, [](size_t, NodeAlone&) {});
  EXPECT_TRUE(at::equal(flat, before));
  loss.backward();
  EXPECT_TRUE(at::equal(weight.grad(), 2 * weight.detach()));
}

TEST(NodeAlone, RefusesInputsThatWereNotCaptured) {
  at::manual_seed(3);
  MeasuredNet net;
  graph::Graph graph = graph_of(net, at::randn({5, 3}));
  const auto refusal = [&](const Tensors& inputs) {
    return testing::refusal([&] { for_each_node_alone(graph, inputs, [](size_t, NodeAlone&) {}); });
  };
  EXPECT_EQ(refusal({}), "split: to measure: the graph takes 1 inputs, got 0");
  EXPECT_EQ(refusal({at::randn({4, 3})}),
            "split: to measure: input \"x\" is to be as captured, f32[5,3], got f32[4,3]");
  EXPECT_EQ(refusal({at::Tensor()}), "split: to measure: input \"x\" is to be as captured, f32[5,3], got undefined");
  EXPECT_EQ(refusal({at::randn({5, 3})}), "accepted");
  graph.attributes[0].tensor = at::Tensor();
  EXPECT_EQ(refusal({at::randn({5, 3})}), "split: to measure: \"weight\" is bound to no tensor");
}

}  // namespace
}  // namespace plumbline::split
