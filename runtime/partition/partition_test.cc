// partition() on hand-written joint graphs. Tests named like those of PyTorch's TestPartitioning
// (test/functorch/test_aotdispatch.py) check the same property.
#include "runtime/partition/partition.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/partition/budget/frontier.h"
#include "runtime/partition/extract.h"
#include "runtime/partition/parity/partition_mode.h"
#include "runtime/partition/parity/policies/older_rules.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/testing/joint_graph_builder.h"
#include "runtime/partition/testing/names_of.h"
#include "runtime/partition/testing/pytorch_graphs.h"
#include "runtime/testing/refusal.h"

namespace plumbline::partition {
namespace {

using testing::Cosines;
using testing::JointGraphBuilder;
using testing::names_of;
using Names = std::vector<std::string>;

const Policy& torch_2_15() {
  static const Policy policy = load_policy("torch-2.15");
  return policy;
}
const Policy& seed() {
  static const Policy policy = load_policy("seed");
  return policy;
}

Partition partition_by(const JointGraph& graph, const char* mode, const Policy& policy = torch_2_15()) {
  return partition(graph, policy, parse_partition_mode(mode));
}

/// Inputs and outputs of a half, counted as PyTorch's tests count them.
std::pair<size_t, size_t> counts(const Subgraph& part) { return {part.inputs.size(), part.outputs.size()}; }
using Counts = std::pair<size_t, size_t>;

using testing::saved_names;

TEST(TestPartitioning, test_recompute_partitioning) {
  const JointGraph graph = testing::sin_sin_add();
  const Partition min_cut = partition_by(graph, "min-cut");
  EXPECT_EQ(counts(min_cut.forward), Counts(2, 2));
  EXPECT_EQ(counts(min_cut.backward), Counts(2, 2));
  EXPECT_EQ(saved_names(min_cut), (Names{"primals_1"}));
  EXPECT_EQ(names_of(min_cut.graph, min_cut.recomputed()), (Names{"sin"}));
  EXPECT_EQ(names_of(min_cut.graph, min_cut.backward.outputs), (Names{"mul_1", "tangents_1"}));

  const Partition all = partition_by(graph, "default");
  EXPECT_EQ(counts(all.forward), Counts(2, 3));
  EXPECT_EQ(saved_names(all), (Names{"primals_1", "sin"}));
  EXPECT_TRUE(all.recomputed().empty());
}

TEST(TestPartitioning, test_default_partitioner_getitem) {
  const JointGraph graph = testing::layer_norm();
  for (const char* mode : {"default", "min-cut"}) {
    const Partition made = partition_by(graph, mode);
    EXPECT_EQ(counts(made.forward), Counts(3, 6)) << mode;
    EXPECT_EQ(counts(made.backward), Counts(6, 3)) << mode;
    EXPECT_EQ(saved_names(made), (Names{"primals_1", "primals_2", "primals_3", "getitem_1", "getitem_2"})) << mode;
  }
}

TEST(TestPartitioning, test_min_cut_partitioner_save_shape) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), tangent = build.tangent(40);
  const NodeIndex sum = build.call("sum", {x}, 40), rows = build.integer("sym_size", {x}, 10),
                  columns = build.integer("sym_size", {x}, 10);
  build.at(rows).args.push_back({.kind = JointArgument::Kind::Integer, .integer = 0});
  build.at(columns).args.push_back({.kind = JointArgument::Kind::Integer, .integer = 1});
  build.begin_backward();
  const NodeIndex unsqueeze = build.view("unsqueeze", tangent);
  const NodeIndex expand = build.call("expand", {unsqueeze, rows, columns}, 400);
  const JointGraph graph = build.graph({sum}, {expand});
  for (const char* mode : {"default", "min-cut"}) {
    const Partition made = partition_by(graph, mode);
    EXPECT_EQ(counts(made.forward), Counts(1, 3)) << mode;
    EXPECT_EQ(counts(made.backward), Counts(3, 1)) << mode;
    EXPECT_EQ(names_of(made.graph, made.forward.outputs), (Names{"sum", "sym_size", "sym_size_1"})) << mode;
    EXPECT_EQ(names_of(made.graph, made.backward.inputs), (Names{"sym_size", "sym_size_1", "tangents_1"})) << mode;
  }
}

TEST(TestPartitioning, test_min_cut_partitioner_save_shape_static) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), tangent = build.tangent(40);
  const NodeIndex sum = build.call("sum", {x}, 40);
  build.begin_backward();
  const NodeIndex unsqueeze = build.view("unsqueeze", tangent), expand = build.view("expand", unsqueeze, 400);
  const Partition made = partition_by(build.graph({sum}, {expand}), "min-cut");
  EXPECT_EQ(counts(made.forward), Counts(1, 1));
  EXPECT_EQ(counts(made.backward), Counts(1, 1));
}

TEST(TestPartitioning, test_min_cut_partitioner_cosines) {
  const Partition min_cut = partition_by(Cosines().graph(), "min-cut");
  EXPECT_EQ(counts(min_cut.forward), Counts(1, 2));
  EXPECT_EQ(counts(min_cut.backward), Counts(2, 1));
  EXPECT_EQ(saved_names(min_cut), (Names{"primals_1"}));
  EXPECT_EQ(saved_names(partition_by(Cosines().graph(), "default")), (Names{"primals_1", "cos", "cos_1"}));
}

TEST(TestPartitioning, test_min_cut_partitioner_sum_of_four) {
  JointGraphBuilder build;
  const NodeIndex a = build.primal(400), b = build.primal(400), c = build.primal(400), d = build.primal(400),
                  tangent = build.tangent(400);
  const NodeIndex add = build.call("add", {a, b}, 400), add_1 = build.call("add", {add, c}, 400),
                  add_2 = build.call("add", {add_1, d}, 400), cos = build.call("cos", {add_2}, 400),
                  cos_1 = build.call("cos", {cos}, 400);
  build.begin_backward();
  const NodeIndex sin = build.call("sin", {cos}, 400), neg = build.call("neg", {sin}, 400),
                  mul = build.call("mul", {tangent, neg}, 400), sin_1 = build.call("sin", {add_2}, 400),
                  neg_1 = build.call("neg", {sin_1}, 400), mul_1 = build.call("mul", {mul, neg_1}, 400);
  const JointGraph graph = build.graph({cos_1}, {mul_1, mul_1, mul_1, mul_1});
  const Partition min_cut = partition_by(graph, "min-cut");
  EXPECT_EQ(counts(min_cut.forward), Counts(4, 2));
  EXPECT_EQ(counts(min_cut.backward), Counts(2, 4));
  EXPECT_EQ(saved_names(min_cut), (Names{"add_2"}));
  // The caller's inputs are free to save, so mode bytes saves only inputs.
  const Partition bytes = partition_by(graph, "bytes");
  for (const NodeIndex node : bytes.saved) EXPECT_EQ(bytes.graph.nodes[node].kind, JointKind::Primal);
}

TEST(TestPartitioning, test_min_cut_partitioner_mm_tanh_tanh) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), tangent = build.tangent(400);
  const NodeIndex ones = build.call("ones", {}, 400), mm = build.call("mm", {x, ones}, 400),
                  tanh = build.call("tanh", {mm}, 400), tanh_1 = build.call("tanh", {tanh}, 400);
  build.begin_backward();
  const NodeIndex tanh_backward = build.call("tanh_backward", {tangent, tanh_1}, 400),
                  tanh_backward_1 = build.call("tanh_backward", {tanh_backward, tanh}, 400), t = build.view("t", ones),
                  mm_1 = build.call("mm", {tanh_backward_1, t}, 400);
  const JointGraph graph = build.graph({tanh_1}, {mm_1});
  const Partition min_cut = partition_by(graph, "min-cut");
  EXPECT_EQ(counts(min_cut.forward), Counts(1, 4));
  EXPECT_EQ(saved_names(min_cut), (Names{"mm", "tanh_1", "t"}));
}

TEST(TestPartitioning, test_min_cut_partitioner_recomputable_ops) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), tangent = build.tangent(400);
  const NodeIndex mul = build.call("mul", {x, x}, 400), mul_1 = build.call("mul", {mul, x}, 400);
  build.begin_backward();
  const NodeIndex mul_2 = build.call("mul", {tangent, mul}, 400), mul_3 = build.call("mul", {tangent, x}, 400),
                  mul_4 = build.call("mul", {mul_3, x}, 400), add = build.call("add", {mul_2, mul_4}, 400),
                  mul_5 = build.call("mul", {mul_3, x}, 400), add_1 = build.call("add", {add, mul_5}, 400);
  const JointGraph graph = build.graph({mul_1}, {add_1});
  for (const Policy* base : {&torch_2_15(), &seed()}) {
    Policy policy = *base;
    policy.recomputes_pointwise = false;
    policy.recomputable = {};
    const Partition none = partition_by(graph, "min-cut", policy);
    EXPECT_EQ(counts(none.forward), Counts(1, 3)) << base->name;
    EXPECT_EQ(saved_names(none), (Names{"primals_1", "mul"})) << base->name;
    policy.recomputable = {"aten::mul"};
    const Partition one = partition_by(graph, "min-cut", policy);
    EXPECT_EQ(counts(one.forward), Counts(1, 2)) << base->name;
    EXPECT_EQ(saved_names(one), (Names{"primals_1"})) << base->name;
    EXPECT_EQ(names_of(one.graph, one.recomputed()), (Names{"mul"})) << base->name;
  }
}

TEST(TestPartitioning, test_min_cut_partitioner_raise_getitems) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), tangent = build.tangent(200), tangent_2 = build.tangent(200);
  const std::vector<NodeIndex> parts = build.split(x, 2);
  const NodeIndex sin = build.call("sin", {parts[0]}, 200), cos = build.call("cos", {parts[1]}, 200);
  build.begin_backward();
  const NodeIndex sin_1 = build.call("sin", {parts[1]}, 200), neg = build.call("neg", {sin_1}, 200),
                  mul = build.call("mul", {tangent_2, neg}, 200), cos_1 = build.call("cos", {parts[0]}, 200),
                  mul_1 = build.call("mul", {tangent, cos_1}, 200), cat = build.call("cat", {mul_1, mul}, 400);
  const Partition made = partition_by(build.graph({sin, cos}, {cat}), "min-cut");
  EXPECT_EQ(saved_names(made), (Names{"primals_1"}));
  EXPECT_EQ(names_of(made.graph, made.backward.ops),
            (Names{"split", "getitem_1", "getitem", "sin_1", "neg", "mul", "cos_1", "mul_1", "cat"}));
}

/// A custom partitioner is a choice of saved values.
TEST(TestPartitioning, test_custom_partitioner_fn) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), tangent = build.tangent(400);
  const NodeIndex cos = build.call("cos", {x}, 400), cos_1 = build.call("cos", {cos}, 400);
  build.begin_backward();
  const NodeIndex sin = build.call("sin", {cos}, 400), neg = build.call("neg", {sin}, 400),
                  mul = build.call("mul", {tangent, neg}, 400), sin_1 = build.call("sin", {x}, 400),
                  neg_1 = build.call("neg", {sin_1}, 400), mul_1 = build.call("mul", {mul, neg_1}, 400);
  const Partition made = extract(build.graph({cos_1}, {mul_1}), {x}, {}, torch_2_15(), true);
  EXPECT_EQ(names_of(made.graph, made.forward.outputs), (Names{"cos_1", "primals_1"}));
  EXPECT_EQ(names_of(made.graph, made.recomputed()), (Names{"cos"}));
}

/// aot_export_simplified_basic: x * y and y * y.detach(); the original test runs the halves by hand.
TEST(TestPartitioning, aot_export_simplified_basic) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(16), y = build.primal(16), tangent = build.tangent(16),
                  tangent_2 = build.tangent(16);
  const NodeIndex mul = build.call("mul", {x, y}, 16), detach = build.view("detach", y),
                  mul_1 = build.call("mul", {y, detach}, 16);
  build.begin_backward();
  const NodeIndex mul_2 = build.call("mul", {tangent_2, detach}, 16), mul_3 = build.call("mul", {tangent, x}, 16),
                  mul_4 = build.call("mul", {tangent, y}, 16), add = build.call("add", {mul_2, mul_3}, 16);
  const Partition made = partition_by(build.graph({mul, mul_1}, {mul_4, add}), "default");
  EXPECT_EQ(names_of(made.graph, made.forward.ops), (Names{"mul", "detach", "mul_1"}));
  EXPECT_EQ(names_of(made.graph, made.forward.outputs), (Names{"mul", "mul_1", "primals_1", "primals_2", "detach"}));
  EXPECT_EQ(names_of(made.graph, made.backward.inputs),
            (Names{"primals_1", "primals_2", "detach", "tangents_1", "tangents_2"}));
  EXPECT_EQ(names_of(made.graph, made.backward.ops), (Names{"mul_2", "mul_3", "mul_4", "add"}));
}

// --- the facade ------------------------------------------------------------------------------------------------------

TEST(Partition, DeadAndEqualNodesGoFirst) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), tangent = build.tangent(400);
  const NodeIndex cos = build.call("cos", {x}, 400), exp = build.call("exp", {cos}, 400);
  build.call("sin", {exp}, 400);
  build.begin_backward();
  const NodeIndex cos_1 = build.call("cos", {x}, 400), exp_1 = build.call("exp", {cos_1}, 400),
                  mul = build.call("mul", {tangent, exp_1}, 400);
  const JointGraph graph = build.graph({exp}, {mul});
  Policy policy = torch_2_15();
  policy.kept_apart = &older_rules::nothing_apart;
  const Partition merged = partition_by(graph, "min-cut", policy);
  EXPECT_EQ(names_of(merged.graph, merged.recomputed()).size() + merged.graph.nodes.size(), 7u)
      << "primals_1, tangents_1, cos, exp, exp_1 and mul remain, and cos runs twice";
  policy.cse = false;
  EXPECT_EQ(partition_by(graph, "min-cut", policy).graph.nodes.size(), 7u);
  // The default partition does not clean up the graph.
  EXPECT_EQ(partition_by(graph, "default").graph.nodes.size(), graph.nodes.size());
}

TEST(Partition, ABudgetKeepsTheCostlyCall) {
  // Two products with one weight each; the budget has room for one of them. A dead call precedes them.
  JointGraphBuilder build;
  const NodeIndex x = build.primal(4096), w = build.primal(4096), v = build.primal(4096), tangent = build.tangent(4096);
  build.call("exp", {x}, 4096);
  const NodeIndex mm = build.call("mm", {x, w}, 4096), cos = build.call("cos", {mm}, 4096),
                  mm_1 = build.call("mm", {cos, v}, 4096), cos_1 = build.call("cos", {mm_1}, 4096);
  build.begin_backward();
  const NodeIndex sin = build.call("sin", {mm_1}, 4096), mul = build.call("mul", {tangent, sin}, 4096),
                  mm_2 = build.call("mm", {mul, v}, 4096), sin_1 = build.call("sin", {mm}, 4096),
                  mul_1 = build.call("mul", {mm_2, sin_1}, 4096), mm_3 = build.call("mm", {x, mul_1}, 4096),
                  mm_4 = build.call("mm", {cos, mul}, 4096);
  for (const NodeIndex costly : {mm, mm_1}) {
    JointGraph graph = build.graph({cos_1}, {kNoNode, mm_3, mm_4});
    for (JointNode& node : graph.nodes) node.flops = 1;
    graph.nodes[costly].flops = 1000;
    PartitionOptions options = parse_partition_mode("budget=0.5");
    options.static_inputs = {1, 2};
    const Partition made = partition(graph, torch_2_15(), options);
    const Names kept = saved_names(made);
    EXPECT_EQ(std::ranges::count(kept, graph.nodes[costly].name), 1) << graph.nodes[costly].name;
  }
}

TEST(Partition, TheBudgetOfTheGraphGoesFirst) {
  Cosines cosines;
  JointGraph graph = cosines.graph();
  graph.nodes[cosines.cos].memory_budget = 0;
  const Partition made = partition_by(graph, "min-cut");
  EXPECT_EQ(saved_names(made), (Names{"primals_1"}));
  EXPECT_TRUE(made.cuts.empty()) << "a budget of 0 saves the inputs and cuts nothing";
  EXPECT_EQ(made.budget_of_graph, 0.0);
  EXPECT_EQ(partition_by(graph, "budget=0.75").budget_of_graph, 0.0);
  for (const char* mode : {"default", "aggressive", "bytes"})
    EXPECT_EQ(partition_by(graph, mode).budget_of_graph, std::nullopt) << mode;
  EXPECT_EQ(partition_by(cosines.graph(), "min-cut").budget_of_graph, std::nullopt);
  graph.nodes[cosines.cos].memory_budget = 2;
  testing::expect_part(testing::refusal([&] { partition_by(graph, "min-cut"); }), "the budget must be between 0 and 1");
}

TEST(Partition, TheFrontierIsOfEveryBudgetWhateverTheGraphAsksFor) {
  Cosines cosines;
  JointGraph graph = cosines.graph();
  const PartitionOptions options = parse_partition_mode("budget=1");
  const std::vector<BudgetPoint> plain = budget_frontier(graph, torch_2_15(), options);
  graph.nodes[cosines.cos].memory_budget = 0;
  const std::vector<BudgetPoint> tagged = budget_frontier(graph, torch_2_15(), options);
  ASSERT_EQ(tagged.size(), plain.size());
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(tagged[i].saved, plain[i].saved);
}

/// z = sin(mm) + sin(mm), with two separate sin calls; the backward reads both. The tests tag one or both of them.
struct Twice {
  JointGraphBuilder build;
  NodeIndex x = build.primal(400), w = build.primal(400), tangent = build.tangent(400);
  NodeIndex mm = build.call("mm", {x, w}, 400), sin = build.call("sin", {mm}, 400),
            sin_1 = build.call("sin", {mm}, 400), add = build.call("add", {sin, sin_1}, 400);
  JointGraph graph() {
    build.begin_backward();
    const NodeIndex mul = build.call("mul", {tangent, sin_1}, 400), mul_1 = build.call("mul", {mul, sin}, 400),
                    mul_2 = build.call("mul", {mul_1, mm}, 400);
    return build.graph({add}, {mul_2, kNoNode});
  }
};

TEST(Partition, OurOwnModesKeepTheTagsOfMergedCalls) {
  Twice untagged;
  EXPECT_EQ(saved_names(partition_by(untagged.graph(), "bytes")), (Names{"mm"}));
  for (const char* mode : {"bytes", "budget=0:peak"}) {
    Twice tagged, both;
    tagged.build.at(tagged.sin_1).recompute = CheckpointPolicy::MustSave;
    const Partition one = partition_by(tagged.graph(), mode);
    EXPECT_EQ(std::ranges::count(saved_names(one), "sin"), 1) << mode;
    EXPECT_EQ(std::ranges::count(names_of(one.graph, one.recomputed()), "sin"), 0) << mode;
    // Contradictory tags: the calls are not merged.
    both.build.at(both.sin).recompute = CheckpointPolicy::MustRecompute;
    both.build.at(both.sin_1).recompute = CheckpointPolicy::MustSave;
    const Partition two = partition_by(both.graph(), mode);
    EXPECT_EQ(names_of(two.graph, two.recomputed()), (Names{"sin"})) << mode;
    EXPECT_EQ(std::ranges::count(saved_names(two), "sin_1"), 1) << mode;
  }
  // PyTorch's modes lose the tag of a merged call, as PyTorch does.
  Twice tagged;
  tagged.build.at(tagged.sin_1).recompute = CheckpointPolicy::MustSave;
  const Partition theirs = partition_by(tagged.graph(), "aggressive");
  EXPECT_EQ(names_of(theirs.graph, theirs.recomputed()), (Names{"sin"}));
}

/// Our own modes run the backward's effects in the order of the trace.
TEST(Partition, OurOwnModesLoseNoEffects) {
  for (const char* mode : {"bytes", "budget=0:peak", "budget=1:peak"}) {
    JointGraphBuilder build;
    const NodeIndex x = build.primal(16), tangent = build.tangent(16);
    const NodeIndex sin = build.call("sin", {x}, 16);
    build.begin_backward();
    const NodeIndex log = build.call("own::log", {x}, 16);
    const NodeIndex rand = build.call("rand_like", {x}, 16), rand_1 = build.call("rand_like", {x}, 16);
    const NodeIndex mul = build.call("mul", {tangent, rand_1}, 16), mul_1 = build.call("mul", {mul, rand}, 16);
    build.at(log).impure = true;
    for (const NodeIndex node : {log, rand, rand_1}) build.at(node).mark = JointMark::MustBeInBackward;
    const Partition made = partition_by(build.graph({sin}, {mul_1}), mode);
    EXPECT_EQ(names_of(made.graph, made.backward.ops), (Names{"log", "rand_like", "rand_like_1", "mul", "mul_1"}))
        << mode;
  }
}

TEST(Partition, WithoutABackwardNothingIsSaved) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400);
  const NodeIndex y = build.call("cos", {x}, 400);
  build.at(y).recompute = CheckpointPolicy::MustRecompute;
  for (const Policy* policy : {&torch_2_15(), &seed()}) {
    const Partition made = partition_by(build.graph({y}, {}), "min-cut", *policy);
    EXPECT_EQ(names_of(made.graph, made.forward.outputs), (Names{"cos"})) << policy->name;
    EXPECT_TRUE(made.backward.ops.empty());
    EXPECT_EQ(made.backward.inputs, std::vector<NodeIndex>());
  }
}

TEST(Partition, WhatCannotBePartitionedIsRefusedByName) {
  Cosines cosines;
  JointGraph graph = cosines.graph();
  PartitionOptions options;
  options.static_inputs = {1};
  EXPECT_EQ(testing::refusal([&] { partition(graph, torch_2_15(), options); }),
            "partition: static input 1 is out of range: the number of primals is 1");
  options = {};
  options.budget = 1.5;
  options.mode = PartitionMode::Budget;
  testing::expect_part(testing::refusal([&] { partition(graph, torch_2_15(), options); }),
                       "the budget must be between 0 and 1, not 1.5");
  graph.nodes[0].kind = JointKind::OtherInput;
  testing::expect_part(testing::refusal([&] { partition(graph, torch_2_15(), {}); }),
                       "the input 'primals_1' is neither a tensor nor a number of the forward");
}

TEST(Partition, TheSeedReordersOnlyTaggedGraphs) {
  Cosines cosines;
  JointGraph graph = cosines.graph();
  const Names in_order = {"cos", "cos_1", "sin", "neg", "mul", "sin_1", "neg_1", "mul_1", "sin_2", "neg_2", "mul_2"};
  const Partition plain = partition_by(graph, "min-cut", seed());
  EXPECT_EQ(saved_names(plain), (Names{"primals_1"}));
  EXPECT_EQ(names_of(plain.graph, plain.backward.ops), in_order);
  // The trace computes the first cosine's sin early here; autograd's order would defer it.
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), tangent = build.tangent(400);
  const NodeIndex cos = build.call("cos", {x}, 400), cos_1 = build.call("cos", {cos}, 400);
  build.begin_backward();
  const NodeIndex sin_1 = build.call("sin", {x}, 400), sin = build.call("sin", {cos}, 400),
                  mul = build.call("mul", {tangent, sin}, 400), mul_1 = build.call("mul", {mul, sin_1}, 400);
  for (const bool tagged : {false, true}) {
    build.at(cos).recompute = tagged ? std::optional(CheckpointPolicy::MustRecompute) : std::nullopt;
    build.at(cos).region = tagged ? 1 : -1;
    const Partition made = partition_by(build.graph({cos_1}, {mul_1}), "min-cut", seed());
    EXPECT_EQ(names_of(made.graph, made.backward.ops),
              tagged ? (Names{"cos", "sin_1", "mul", "sin", "mul_1"}) : (Names{"cos", "sin", "sin_1", "mul", "mul_1"}));
  }
}

// --- certificate -----------------------------------------------------------------------------------------------------

TEST(Certificate, EqualChoicesHaveOne) {
  for (const char* mode : {"default", "min-cut", "aggressive", "budget=0"}) {
    Cosines one, other;
    EXPECT_EQ(certificate(partition_by(one.graph(), mode)), certificate(partition_by(other.graph(), mode))) << mode;
  }
}

TEST(Certificate, AnotherChoiceOrGraphHasAnother) {
  Cosines cosines;
  const JointGraph graph = cosines.graph();
  const auto of = [&](std::vector<NodeIndex> saved) {
    return certificate(extract(graph, std::move(saved), {}, torch_2_15(), true));
  };
  const uint64_t all = of({cosines.x, cosines.cos, cosines.cos_1});
  EXPECT_NE(all, of({cosines.x}));
  EXPECT_NE(all, of({cosines.x, cosines.cos}));
  EXPECT_NE(all, of({cosines.cos, cosines.x, cosines.cos_1})) << "the order in which values are returned";
  JointGraph wider = graph;
  wider.nodes[cosines.cos].out.shape[0].value = 200;
  EXPECT_NE(all, certificate(extract(wider, {cosines.x, cosines.cos, cosines.cos_1}, {}, torch_2_15(), true)));
  JointGraph constant = graph;  // like a different dropout probability
  constant.nodes[cosines.cos].kwargs.emplace_back("p", JointArgument{.kind = JointArgument::Kind::Float, .real = 0.5});
  EXPECT_NE(all, certificate(extract(constant, {cosines.x, cosines.cos, cosines.cos_1}, {}, torch_2_15(), true)));
}

}  // namespace
}  // namespace plumbline::partition
