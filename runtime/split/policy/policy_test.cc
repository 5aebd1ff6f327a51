#include "runtime/split/policy/policy.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <limits>

#include "runtime/capture/capture.h"
#include "runtime/error.h"
#include "runtime/flops/graph_flops.h"
#include "runtime/graph/testing/parse.h"
#include "runtime/split/measure/node_flops.h"
#include "runtime/split/policy/legal_cuts.h"
#include "runtime/split/policy/optimal_cuts.h"
#include "runtime/split/split.h"
#include "runtime/testing/refusal.h"

namespace plumbline::split {
namespace {

using Cuts = std::vector<int32_t>;
using Tensors = std::vector<at::Tensor>;

/// A chain of `calls` neg, with markers before those in `markers`.
graph::Graph chain(int calls, std::vector<graph::ModuleCall> modules, const std::vector<int>& markers = {}) {
  std::string text = "input %0: f32[2] = \"x\"\n";
  for (int i = 0; i < calls; ++i) {
    if (std::count(markers.begin(), markers.end(), i)) text += "pipe_split\n";
    text += "%" + std::to_string(i + 1) + ": f32[2] = aten::neg(%" + std::to_string(i) + ")\n";
  }
  graph::Graph graph = graph::parse_graph(text + "return %" + std::to_string(calls) + "\n");
  graph.module_calls = std::move(modules);
  return graph;
}

TEST(Policy, EveryNthCall) {
  std::vector<graph::ModuleCall> modules = {{"", "PolicyNet", 0, 8}};
  for (int i = 0; i < 7; ++i) {
    modules.push_back(
        {"l" + std::to_string(i), i % 2 ? "torch.nn.modules.linear.Linear" : "torch::nn::LinearImpl", i, i + 1});
    modules.push_back({"l" + std::to_string(i) + ".inner", "BiLinear", i, i + 1});
  }
  const graph::Graph graph = chain(8, modules);
  EXPECT_EQ(every_nth_call("Linear", 1)(graph), (Cuts{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(every_nth_call("Linear", 2)(graph), (Cuts{2, 4, 6}));
  EXPECT_EQ(every_nth_call("LinearImpl", 3)(graph), (Cuts{3, 6}));
  EXPECT_EQ(every_nth_call("linear.Linear", 1)(graph), (Cuts{3, 5})) << "calls 0, 1 and 2 of that class are l1, l3, l5";
  EXPECT_EQ(every_nth_call("torch::nn::LinearImpl", 1)(graph), (Cuts{2, 4, 6}));
  EXPECT_EQ(every_nth_call("Linear", 7)(graph), Cuts{}) << "call 7 would be the eighth";
  EXPECT_EQ(every_nth_call("PolicyNet", 1)(graph), Cuts{});
  EXPECT_EQ(
      testing::refusal([&] { every_nth_call("inear", 1)(graph); }),
      "split: no module of class inear is called; called are: BiLinear, PolicyNet, torch.nn.modules.linear.Linear, "
      "torch::nn::LinearImpl");
  EXPECT_EQ(testing::refusal([&] { every_nth_call("Linear", 1)(chain(2, {})); }),
            "split: no module of class Linear is called; no call of a module is known");
  EXPECT_EQ(testing::refusal([&] { every_nth_call("Linear", 0)(graph); }),
            "split: every 0-th call of Linear asked for; 1 or more is");
}

TEST(Policy, EveryNthCallMakesNoEmptyStage) {
  // Nodes: marker, neg, marker, neg, neg.
  const std::vector<graph::ModuleCall> modules = {{"a", "A", 0, 0}, {"b", "A", 0, 2}, {"c", "A", 1, 2},
                                                  {"d", "A", 2, 4}, {"e", "A", 3, 4}, {"f", "A", 5, 5}};
  EXPECT_EQ(every_nth_call("A", 1)(chain(3, modules, {0, 1})), (Cuts{3}));
}

TEST(Policy, EveryNthCallIsRefusedWhereAWriteWouldBeParted) {
  graph::Graph graph = graph::parse_graph(
      "input %0: f32[2] = \"x\"\n%1: f32[2] = aten::neg(%0)\n%2: f32[2] = aten::relu_(%1)\n"
      "return %2\n");
  graph.module_calls = {{"a", "A", 0, 1}, {"b", "A", 1, 2}};
  EXPECT_EQ(
      testing::refusal([&] { every_nth_call("A", 1)(graph); }),
      "split: no stage may begin with call 1 of A ('b'), because a call from there on writes in place what is made "
      "or used before it");
}

/// Layers of different widths, one of them tied, in-place activations, a buffer that is written.
struct PolicyNet : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor h = at::linear(x, first);
    h.relu_();
    h = at::linear(h, wide);
    count.add_(h.sum());
    h = at::gelu(h) + count;
    h = at::linear(h, wide.t()).relu_();
    h = at::linear(h, first.t());
    return at::linear(at::tanh(h), last);
  }
  at::Tensor first = register_parameter("first", at::rand({8, 6}));
  at::Tensor wide = register_parameter("wide", at::rand({16, 8}));
  at::Tensor last = register_parameter("last", at::rand({12, 6}));
  at::Tensor count = register_buffer("count", at::zeros({}));
};

graph::Graph captured(PolicyNet& net) {
  return capture::capture(net, [&](const Tensors& in) { return Tensors{net.forward(in[0])}; },
                          {{"x", at::rand({5, 6})}});
}

graph::Graph marked(const graph::Graph& graph, const Cuts& cuts) {
  graph::Graph out = graph;
  for (size_t i = cuts.size(); i-- > 0;) out.nodes.insert(out.nodes.begin() + cuts[i], graph::Node{});
  return out;
}

/// The cost of the costliest stage that split() makes with markers at `cuts`; infinite if it refuses or merges some.
double costliest(const graph::Graph& graph, const Cuts& cuts,
                 const std::function<double(const Pipe&, int stage)>& cost) {
  try {
    const Pipe pipe = split(marked(graph, cuts));
    if (pipe.num_stages() != static_cast<int>(cuts.size()) + 1) return std::numeric_limits<double>::infinity();
    double most = 0;
    for (int s = 0; s < pipe.num_stages(); ++s) most = std::max(most, cost(pipe, s));
    return most;
  } catch (const InputError&) {
    return std::numeric_limits<double>::infinity();
  }
}

/// The best result of any choice of stages - 1 legal positions.
double least_possible(const graph::Graph& graph, int stages,
                      const std::function<double(const Pipe&, int stage)>& cost) {
  double least = std::numeric_limits<double>::infinity();
  const auto nodes = static_cast<int>(graph.nodes.size());
  const std::vector<char> legal = legal_cuts(graph);
  for (unsigned set = 0; set < 1u << (nodes - 1); ++set) {
    Cuts cuts;
    for (int p = 1; p < nodes; ++p)
      if (set >> (p - 1) & 1u) cuts.push_back(p);
    const bool possible = std::ranges::all_of(cuts, [&](int32_t p) { return legal[p]; });
    if (possible && static_cast<int>(cuts.size()) == stages - 1) least = std::min(least, costliest(graph, cuts, cost));
  }
  return least;
}

double parameter_bytes(const Pipe& pipe, int stage) {
  double bytes = 0;
  for (const auto& [name, tensor] : make_stage_state(pipe, stage).parameters) {
    bool counted_before = false;
    for (const SharedParameter& shared : pipe.shared)
      counted_before = counted_before || (shared.name == name && shared.stages.front() < stage);
    if (!counted_before) bytes += static_cast<double>(tensor.nbytes());
  }
  return bytes;
}

double flops(const Pipe& pipe, int stage) {
  double sum = 0;
  for (double node : flops::estimated_flops(pipe.stages[stage].graph)) sum += node;
  return sum;
}

TEST(Policy, StagesCostNoMoreThanTheBestOfAllPartitions) {
  at::manual_seed(1);
  PolicyNet net;
  const graph::Graph graph = captured(net);
  ASSERT_LT(graph.nodes.size(), 17u);
  // The cost of a node is the number of bytes it reads: a cost that a stage's graph gives as well as the whole graph.
  const auto read_bytes = [](const graph::Graph& g, const graph::Node& node) {
    double bytes = 0;
    graph::for_each_use(
        node, [&](graph::ValueId v) { bytes += static_cast<double>(c10::multiply_integers(g.values[v].sizes)); });
    return bytes;
  };
  std::vector<double> costs;
  for (const graph::Node& node : graph.nodes) costs.push_back(read_bytes(graph, node));
  const auto stage_read_bytes = [&](const Pipe& pipe, int stage) {
    double sum = 0;
    for (const graph::Node& node : pipe.stages[stage].graph.nodes) sum += read_bytes(pipe.stages[stage].graph, node);
    return sum;
  };
  for (int stages = 1; stages <= 4; ++stages) {
    SCOPED_TRACE(stages);
    const auto expect_best = [&](const SplitPolicy& policy, auto&& cost) {
      const Cuts cuts = policy(graph);
      const double ours = costliest(graph, cuts, cost);
      EXPECT_LT(ours, std::numeric_limits<double>::infinity());
      EXPECT_EQ(ours, least_possible(graph, stages, cost)) << ::testing::PrintToString(cuts);
    };
    expect_best(equal_parameter_bytes(stages), parameter_bytes);
    expect_best(equal_estimated_flops(stages), flops);
    expect_best([&](const graph::Graph& of) { return optimal_cuts(costs, legal_cuts(of), stages); }, stage_read_bytes);
  }
}

TEST(Policy, MeasuringPoliciesMakeTheStagesAskedFor) {
  at::manual_seed(1);
  PolicyNet net;
  const graph::Graph graph = captured(net);
  const Tensors inputs = {at::rand({5, 6})};
  for (int stages = 1; stages <= 4; ++stages) {
    for (const SplitPolicy& policy : {equal_measured_flops(stages, inputs), optimal_partition(stages, inputs)})
      EXPECT_EQ(split(marked(graph, policy(graph))).num_stages(), stages);
    EXPECT_EQ(equal_measured_flops(stages, inputs)(graph),
              optimal_cuts(measure_flops(graph, inputs), legal_cuts(graph), stages));
  }
  EXPECT_EQ(net.count.item<double>(), 0);
  EXPECT_NE(testing::refusal([&] { optimal_partition(2, Tensors{at::rand({4, 6})})(graph); }), "accepted");
}

TEST(Policy, ParametersAndEstimatesNeedNoData) {
  at::manual_seed(1);
  PolicyNet net;
  graph::Graph graph = captured(net);
  const Cuts by_bytes = equal_parameter_bytes(3)(graph), by_flops = equal_estimated_flops(3)(graph);
  EXPECT_EQ(by_bytes.size(), 2u);
  for (graph::Attribute& attribute : graph.attributes) attribute.tensor = attribute.tensor.to(at::kMeta);
  EXPECT_EQ(equal_parameter_bytes(3)(graph), by_bytes);
  EXPECT_EQ(equal_estimated_flops(3)(graph), by_flops);
}

TEST(Policy, RefusesMoreStagesThanThereCanBe) {
  const graph::Graph graph = chain(4, {}, {2});
  EXPECT_EQ(optimal_cuts(std::vector<double>{1, 1, 0, 1, 1}, legal_cuts(graph), 4), (Cuts{1, 3, 4}));
  EXPECT_EQ(testing::refusal([&] { equal_estimated_flops(5)(graph); }),
            "split: 5 stages asked for, but the places where a stage may begin allow 1 to 4");
}

}  // namespace
}  // namespace plumbline::split
