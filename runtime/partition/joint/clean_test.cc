#include "runtime/partition/joint/clean.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/parity/policies/older_rules.h"
#include "runtime/partition/testing/arguments.h"
#include "runtime/partition/testing/golden_files.h"

namespace plumbline::partition {
namespace {

using Argument = JointArgument::Kind;
using Names = std::vector<std::string>;
using Merged = std::map<std::string, std::string>;

Policy policy_of(const std::string& torch) {
  Policy policy;
  if (torch == "2.11.0") policy.kept_apart = &older_rules::nothing_apart;
  return policy;
}

/// Names of what is gone, and of what was merged into what.
std::pair<Names, Merged> changes(const JointGraph& before, const Cleaned& after) {
  std::pair<Names, Merged> found;
  for (size_t i = 0; i < before.nodes.size(); ++i) {
    const std::string& name = before.nodes[i].name;
    const NodeIndex to = after.moved_to[i];
    if (to == kNoNode) {
      found.first.push_back(name);
    } else if (after.graph.nodes[to].name != name) {
      found.second.emplace(name, after.graph.nodes[to].name);
    }
  }
  return found;
}

// --- against PyTorch -------------------------------------------------------------------------------------------------

TEST(Clean, RemovesAndMergesWhatPyTorchDoes) {
  size_t variants = 0, merged = 0;
  for (const JointGraphFile& file : golden_files())
    for (const auto& [name, variant] : file.variants) {
      const std::string where = file.model + " " + name;
      const JointGraph& graph = file.graphs.at(variant.graph);
      const Cleaned alive = remove_dead_nodes(graph);
      const Cleaned left = merge_equal_nodes(alive.graph, policy_of(variant.torch));
      verify(left.graph);
      EXPECT_EQ(changes(graph, alive).first, variant.dce_removed) << where;
      EXPECT_EQ(changes(alive.graph, left).second, variant.cse_merged) << where;
      EXPECT_EQ(left.graph.nodes.size(), static_cast<size_t>(variant.nodes_left)) << where;
      ++variants;
      merged += variant.cse_merged.size();
    }
  EXPECT_GE(variants, 32U);
  EXPECT_GE(merged, 72U) << "something was to be merged";
}

// --- rule by rule ----------------------------------------------------------------------------------------------------

/// A graph written call by call; every result lies in a storage of its own.
class Builder {
 public:
  NodeIndex input(const std::string& name, JointKind kind = JointKind::Primal) {
    return add({.name = name, .kind = kind});
  }
  NodeIndex call(const std::string& name, const std::string& op, std::vector<JointArgument> args) {
    return add({.name = name, .op = op, .overload = "default", .args = std::move(args)});
  }
  JointNode& operator[](NodeIndex node) { return graph_.nodes[node]; }
  JointGraph graph(std::vector<NodeIndex> outputs, int forward) {
    graph_.outputs = std::move(outputs);
    graph_.num_forward_outputs = forward;
    verify(graph_);
    return graph_;
  }

 private:
  NodeIndex add(JointNode node) {
    node.out = {.kind = JointResult::Kind::Tensor,
                .dtype = types::Dtype::Float32,
                .shape = {{4, ""}},
                .strides = {{1, ""}},
                .bytes = 16,
                .storage = static_cast<int32_t>(graph_.storage_bytes.size())};
    graph_.storage_bytes.push_back(16);
    graph_.nodes.push_back(std::move(node));
    return static_cast<NodeIndex>(graph_.nodes.size()) - 1;
  }
  JointGraph graph_;
};

using testing::list;
using testing::node;
using testing::number;

Merged merged(const JointGraph& graph, bool apart = true) {
  Policy policy;
  if (!apart) policy.kept_apart = &older_rules::nothing_apart;
  const Cleaned cleaned = merge_equal_nodes(graph, policy);
  verify(cleaned.graph);
  return changes(graph, cleaned).second;
}

TEST(Clean, DeadNodesGoButNotInputsNorEffects) {
  Builder b;
  const NodeIndex x = b.input("x"), unused = b.input("unused");
  const NodeIndex dead = b.call("dead", "aten::neg", {node(x)});
  b.call("dead_too", "aten::cat", {list({node(dead)})});
  const NodeIndex read = b.call("read", "aten::sin", {node(x)});
  const NodeIndex random = b.call("random", "aten::rand_like", {node(read)});
  b[random].impure = b[random].seeded = true;
  const NodeIndex half_marked = b.call("half_marked", "aten::rand_like", {node(read)});
  b[half_marked].seeded = true;
  const NodeIndex constant = b.call("constant", "", {});
  b[constant].kind = JointKind::GetAttr;
  const NodeIndex write = b.call("write", "aten::copy_", {node(x), node(read)});
  b[write].writes = true;
  const NodeIndex y = b.call("y", "aten::cos", {node(x)});
  b[y].aliases_input = unused;
  const JointGraph graph = b.graph({y, kNoNode, x}, 1);
  const Cleaned cleaned = remove_dead_nodes(graph);
  EXPECT_EQ(changes(graph, cleaned), (std::pair<Names, Merged>({"dead", "dead_too", "constant"}, {})));
  verify(cleaned.graph);
  EXPECT_EQ(cleaned.moved_to, (std::vector<NodeIndex>{0, 1, -1, -1, 2, 3, 4, -1, 5, 6}));
  EXPECT_EQ(cleaned.graph.outputs, (std::vector<NodeIndex>{6, kNoNode, 0}));
  EXPECT_EQ(cleaned.graph.nodes[5].args[1].node, 2);
  EXPECT_EQ(cleaned.graph.nodes[6].aliases_input, 1);
}

TEST(Clean, EqualCallsMergeInChains) {
  Builder b;
  const NodeIndex x = b.input("x");
  const NodeIndex one = b.call("one", "aten::neg", {node(x)});
  const NodeIndex two = b.call("two", "aten::neg", {node(x)});
  const NodeIndex sin_one = b.call("sin_one", "aten::cat", {list({node(x), node(one)}), number(0)});
  const NodeIndex sin_two = b.call("sin_two", "aten::cat", {list({node(x), node(two)}), number(0)});
  b[two].recompute = CheckpointPolicy::MustSave;
  const NodeIndex y = b.call("y", "aten::add", {node(sin_one), node(sin_two)});
  const JointGraph graph = b.graph({y}, 1);
  EXPECT_EQ(merged(graph), (Merged{{"two", "one"}, {"sin_two", "sin_one"}}));
  const Cleaned cleaned = merge_equal_nodes(graph, Policy());
  EXPECT_EQ(cleaned.graph.nodes[3].args[0].node, cleaned.graph.nodes[3].args[1].node);
  EXPECT_EQ(cleaned.graph.nodes[1].recompute, std::nullopt) << "the one that stays keeps its own tag";
}

// The memory model goes by storages: what views a call that is gone views the one that stays.
TEST(Clean, ViewsOfAMergedCallLieInTheOneThatStays) {
  Builder b;
  const NodeIndex x = b.input("x");
  const NodeIndex one = b.call("one", "aten::neg", {node(x)}), two = b.call("two", "aten::neg", {node(x)});
  const NodeIndex view = b.call("view", "aten::t", {node(two)}), y = b.call("y", "aten::mul", {node(one), node(view)});
  b[one].out.storage = 0;
  b[two].out.storage = b[view].out.storage = 1;
  b[y].out.storage = 2;
  for (const NodeIndex node : {one, two, view, y}) b[node].out.kind = JointResult::Kind::Tensor;
  JointGraph graph = b.graph({y}, 1);
  graph.storage_bytes = {8, 8, 8};
  const Cleaned cleaned = merge_equal_nodes(graph, Policy());
  EXPECT_EQ(cleaned.graph.nodes[cleaned.moved_to[view]].out.storage, 0);
  EXPECT_EQ(cleaned.graph.nodes[cleaned.moved_to[y]].out.storage, 2);
}

TEST(Clean, TagsOfMergedCallsAreKeptWhereThatIsAskedFor) {
  using enum CheckpointPolicy;
  using Tag = std::optional<CheckpointPolicy>;
  const auto tags_left = [](const std::vector<Tag>& tags) {
    Builder b;
    const NodeIndex x = b.input("x");
    std::vector<JointArgument> all;
    for (size_t i = 0; i < tags.size(); ++i) {
      const NodeIndex call = b.call("call_" + std::to_string(i), "aten::neg", {node(x)});
      b[call].recompute = tags[i];
      b[call].region = tags[i] ? static_cast<int>(i) : -1;
      all.push_back(node(call));
    }
    const NodeIndex y = b.call("y", "aten::cat", {list(all)});
    const Cleaned cleaned = merge_equal_nodes(b.graph({y}, 1), Policy(), MergedTags::Kept);
    std::vector<std::pair<Tag, int>> left;
    for (const JointNode& node : cleaned.graph.nodes)
      if (node.op == "aten::neg") left.emplace_back(node.recompute, node.region);
    return left;
  };
  using Left = std::vector<std::pair<Tag, int>>;
  EXPECT_EQ(tags_left({std::nullopt, MustSave}), (Left{{MustSave, 1}}));
  EXPECT_EQ(tags_left({std::nullopt, MustRecompute, std::nullopt}), (Left{{MustRecompute, 1}}));
  EXPECT_EQ(tags_left({PreferSave, PreferRecompute}), (Left{{PreferRecompute, 1}})) << "PREFER_SAVE asks for nothing";
  EXPECT_EQ(tags_left({MustRecompute, PreferRecompute}), (Left{{MustRecompute, 0}}));
  EXPECT_EQ(tags_left({MustSave, std::nullopt}), (Left{{MustSave, 0}}));
  EXPECT_EQ(tags_left({MustSave, MustRecompute, MustSave, PreferRecompute}), (Left{{MustSave, 0}, {MustRecompute, 1}}));
}

TEST(Clean, ArgumentsAreEqualByTypeAndBits) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double other_nan = std::bit_cast<double>(std::bit_cast<uint64_t>(nan) ^ 1);
  const JointArgument none, yes{.kind = Argument::Bool, .integer = 1};
  const JointArgument text{.kind = Argument::String, .text = "mean"};
  const std::vector<JointArgument> different = {
      none,
      yes,
      number(1),
      number(1.0),
      number(0),
      number(0.0),
      number(-0.0),
      number(nan),
      number(other_nan),
      text,
      JointArgument{.kind = Argument::Dtype, .dtype = types::Dtype::Int32},
      JointArgument{.kind = Argument::Dtype, .dtype = types::Dtype::Int64},
      JointArgument{.kind = Argument::Layout, .layout = types::Layout::Jagged},
      JointArgument{.kind = Argument::MemoryFormat},
      JointArgument{.kind = Argument::Device},
      JointArgument{.kind = Argument::Device, .device = {.index = 0}},
      list({}),
      list({number(1)}),
      list({number(1), none}),
      list({list({number(1)}), none}),
      JointArgument{.kind = Argument::Slice, .items = {number(1), none}},
      JointArgument{.kind = Argument::Complex, .real = 1, .imaginary = 2},
      JointArgument{.kind = Argument::Complex, .real = 1, .imaginary = 3},
      JointArgument{.kind = Argument::Symbolic, .integer = 1, .text = "s0"},
      JointArgument{.kind = Argument::Symbolic, .integer = 1, .text = "s1"}};
  Builder b;
  const NodeIndex x = b.input("x");
  Merged expected;
  std::vector<JointArgument> all;
  for (const bool again : {false, true})
    for (size_t i = 0; i < different.size(); ++i) {
      const std::string name = "v" + std::to_string(i);
      all.push_back(node(b.call(again ? name + "_again" : name, "aten::f", {node(x), different[i]})));
      if (again) expected[name + "_again"] = name;
    }
  const NodeIndex y = b.call("y", "aten::cat", {list(all)});
  EXPECT_EQ(merged(b.graph({y}, 1)), expected);
}

TEST(Clean, OperatorOverloadAndKeywordsTellCallsApart) {
  Builder b;
  const NodeIndex x = b.input("x");
  std::vector<JointArgument> all;
  const auto add = [&](const std::string& name, const std::string& op, const std::string& overload,
                       std::vector<std::pair<std::string, JointArgument>> kwargs) {
    const NodeIndex call = b.call(name, op, {node(x)});
    b[call].overload = overload;
    b[call].kwargs = std::move(kwargs);
    all.push_back(node(call));
  };
  for (const std::string& again : {std::string(), std::string("_again")}) {
    add("f" + again, "aten::f", "default", {});
    add("g" + again, "aten::g", "default", {});
    add("out" + again, "aten::f", "Tensor", {});
    add("a1" + again, "aten::f", "default", {{"a", number(1)}});
    add("a2" + again, "aten::f", "default", {{"a", number(2)}});
    add("b1" + again, "aten::f", "default", {{"b", number(1)}});
  }
  const NodeIndex y = b.call("y", "aten::cat", {list(all)});
  EXPECT_EQ(merged(b.graph({y}, 1)), (Merged{{"f_again", "f"},
                                             {"g_again", "g"},
                                             {"out_again", "out"},
                                             {"a1_again", "a1"},
                                             {"a2_again", "a2"},
                                             {"b1_again", "b1"}}));
}

TEST(Clean, SomeCallsAreNeverMerged) {
  // Two equal calls, changed by `change`, and what is merged of them and of the equal calls that read them.
  const auto pair = [](auto&& change, const std::string& op = "aten::f") {
    Builder b;
    const NodeIndex x = b.input("x");
    const NodeIndex one = b.call("one", op, {node(x)}), two = b.call("two", op, {node(x)});
    change(b, one, two);
    const NodeIndex y = b.call("y", "aten::add", {node(one), node(two)});
    return merged(b.graph({y}, 1));
  };
  const Merged both{{"two", "one"}};
  EXPECT_EQ(pair([](Builder&, NodeIndex, NodeIndex) {}), both);
  for (bool JointNode::* flag : {&JointNode::impure, &JointNode::seeded, &JointNode::writes,
                                 &JointNode::data_dependent_output, &JointNode::dynamic_output_shape})
    EXPECT_EQ(pair([&](Builder& b, NodeIndex one, NodeIndex two) { b[one].*flag = b[two].*flag = true; }), Merged{});
  for (const char* op : {"aten::rand", "aten::native_dropout", "aten::bernoulli", "aten::randperm", "aten::empty"})
    EXPECT_EQ(pair([](Builder&, NodeIndex, NodeIndex) {}, op), Merged{}) << op;
  EXPECT_EQ(pair([](Builder&, NodeIndex, NodeIndex) {}, "aten::empty_like"), both);
  EXPECT_EQ(pair([](Builder& b, NodeIndex one, NodeIndex two) {
              for (const NodeIndex node : {one, two}) {
                b[node].kind = JointKind::GetAttr;
                b[node].args.clear();
              }
            }),
            Merged{});
  // A call that writes stands between them.
  Builder b;
  const NodeIndex x = b.input("x");
  std::vector<JointArgument> all;
  for (const char* name : {"a", "b", "write", "c", "d"}) {
    const NodeIndex call = b.call(name, "aten::f", {node(x)});
    b[call].writes = name == std::string("write");
    all.push_back(node(call));
  }
  const NodeIndex y = b.call("y", "aten::cat", {list(all)});
  EXPECT_EQ(merged(b.graph({y}, 1)), (Merged{{"b", "a"}, {"d", "c"}}));
}

TEST(Clean, WhatSharesMemoryWithAnOutputStays) {
  Builder b;
  const NodeIndex x = b.input("x");
  const NodeIndex one = b.call("one", "aten::neg", {node(x)}), two = b.call("two", "aten::neg", {node(x)});
  const NodeIndex view = b.call("view", "aten::t", {node(two)});
  b[view].out.storage = b[two].out.storage;
  // One of them may go if only the other is returned, but not the returned one.
  EXPECT_EQ(merged(b.graph({one, view}, 1)), Merged{});
  EXPECT_EQ(merged(b.graph({view}, 1)), Merged{});
  EXPECT_EQ(merged(b.graph({x}, 1)), (Merged{{"two", "one"}}));
  b[one].out.storage = b[two].out.storage = -1;
  EXPECT_EQ(merged(b.graph({two}, 1)), Merged{}) << "its storage is not known";
  b[one].out = b[two].out = {.kind = JointResult::Kind::Scalar, .dtype = types::Dtype::Int64};
  EXPECT_EQ(merged(b.graph({two}, 1)), (Merged{{"two", "one"}})) << "numbers have no memory";
}

TEST(Clean, BuffersOfFunctionalisedWritesStay) {
  for (const auto& [op, key] :
       {std::pair("higher_order::auto_functionalized_v2", "_all_bases"),
        std::pair("higher_order::auto_functionalized_v2", "x"), std::pair("higher_order::auto_functionalized", "x")}) {
    Builder b;
    b.input("x");
    const NodeIndex one = b.call("one", "aten::full", {number(1)}), two = b.call("two", "aten::full", {number(1)});
    const NodeIndex y = b.call("y", op, {});
    b[y].kwargs = {{key, list({node(one), node(two)})}};
    const bool base = std::string(key) == "_all_bases" || !std::string(op).ends_with("_v2");
    EXPECT_EQ(merged(b.graph({y}, 1)), base ? Merged{} : (Merged{{"two", "one"}})) << op << " " << key;
  }
}

TEST(Clean, ForwardOnlyValuesStayApartWhereThePolicySaysSo) {
  Builder b;
  const NodeIndex x = b.input("x"), dy = b.input("dy", JointKind::Tangent);
  const NodeIndex forward = b.call("forward", "aten::sin", {node(x)});
  const NodeIndex again = b.call("again", "aten::sin", {node(x)});
  const NodeIndex y = b.call("y", "aten::neg", {node(forward)});
  const NodeIndex backward = b.call("backward", "aten::sin", {node(x)});
  const NodeIndex dx = b.call("dx", "aten::mul", {list({node(dy), node(backward)})});
  const NodeIndex z = b.call("z", "aten::abs", {node(again)});
  const JointGraph graph = b.graph({y, z, dx}, 2);
  EXPECT_EQ(merged(graph, true), (Merged{{"again", "forward"}}));
  EXPECT_EQ(merged(graph, false), (Merged{{"again", "forward"}, {"backward", "forward"}}));
}

// --- tags of checkpoint regions --------------------------------------------------------------------------------------

TEST(Clean, TagsAreSettledAtTheBordersOfRegions) {
  using enum CheckpointPolicy;
  Builder b;
  const auto tag = [&](NodeIndex node, CheckpointPolicy policy, int region) {
    b[node].recompute = policy;
    b[node].region = region;
    return node;
  };
  const NodeIndex x = b.input("x");
  const NodeIndex outside = b.call("outside", "aten::neg", {node(x)});
  const NodeIndex split = b.call("split", "aten::split", {node(outside)});
  b[split].multi_output = true;
  b[split].out = {.kind = JointResult::Kind::Tuple, .items = {b[outside].out}};
  b[split].region = 1;
  const NodeIndex item = b.call("item", "operator::getitem", {node(split), number(0)});
  b[item].kind = JointKind::GetItem;
  const NodeIndex inner = tag(b.call("inner", "aten::f", {node(outside), node(item)}), PreferRecompute, 1);
  const NodeIndex border = tag(b.call("border", "aten::f", {node(inner)}), MustRecompute, 1);
  const NodeIndex next = tag(b.call("next", "aten::f", {node(border)}), PreferRecompute, 2);
  const NodeIndex back = tag(b.call("back", "aten::f", {node(next)}), PreferRecompute, 1);
  const NodeIndex prefers = tag(b.call("prefers", "aten::f", {node(next)}), PreferSave, 3);
  const NodeIndex hooked = tag(b.call("hooked", "aten::f", {node(back)}), PreferRecompute, 2);
  const NodeIndex hooked_inside = tag(b.call("hooked_inside", "aten::f", {node(back)}), PreferRecompute, 2);
  b[hooked].backward_hook = b[hooked_inside].backward_hook = true;
  const NodeIndex last = tag(b.call("last", "aten::f", {node(hooked_inside)}), PreferRecompute, 2);
  const NodeIndex y = b.call("y", "aten::cat", {list({node(hooked), node(prefers), node(last)})});
  for (const bool default_partitioner : {false, true}) {
    JointGraph graph = b.graph({y}, 1);
    const JointGraph before = graph;
    settle_recompute_tags(graph, default_partitioner);
    // border: region 2 reads it. back: it reads 2, and 2 reads it. hooked: a hook, and nothing recomputed reads it.
    std::set<NodeIndex> saved = {border, back, hooked};
    if (default_partitioner) saved.insert(outside);
    for (NodeIndex i = 0; i < static_cast<NodeIndex>(graph.nodes.size()); ++i)
      EXPECT_EQ(graph.nodes[i].recompute, saved.contains(i) ? MustSave : before.nodes[i].recompute)
          << graph.nodes[i].name << (default_partitioner ? " default" : " min-cut");
  }
}

TEST(Clean, KeepNodesRenumbers) {
  Builder b;
  const NodeIndex x = b.input("x");
  b.input("unused");
  const NodeIndex f = b.call("f", "aten::f", {node(x)});
  b[f].kwargs = {{"k", list({node(x)})}};
  const NodeIndex g = b.call("g", "aten::g", {node(f)});
  const JointGraph graph = b.graph({g}, 1);
  const Cleaned kept = keep_nodes(graph, {1, 0, 1, 1});
  EXPECT_EQ(kept.moved_to, (std::vector<NodeIndex>{0, kNoNode, 1, 2}));
  EXPECT_EQ(kept.graph.nodes[2].args[0].node, 1);
  EXPECT_EQ(kept.graph.outputs, std::vector<NodeIndex>{2});
  EXPECT_EQ(keep_nodes(graph, {1, 1, 1, 1}).graph.nodes.size(), 4U);
  EXPECT_DEATH(keep_nodes(graph, {1, 1, 0, 1}), "g reads f");
}

}  // namespace
}  // namespace plumbline::partition
