// min_bytes_cut() compared with an exhaustive search over sets of savable values.
#include "runtime/partition/cut/min_bytes.h"

#include <gtest/gtest.h>

#include <bit>
#include <optional>
#include <set>

#include "runtime/error.h"
#include "runtime/partition/testing/random_joint_graph.h"
#include "runtime/testing/in_full.h"
#include "runtime/testing/refusal.h"

namespace plumbline::partition {
namespace {

using testing::JointGraphBuilder;

/// In these tests, the operators that must not be recomputed; independent of the tables that policies are read from.
bool intensive(const JointNode& node) { return node.op == "aten::mm"; }
bool random_call(const JointNode& node) { return node.op == "aten::native_dropout"; }
bool effect(const JointNode& node) { return node.op == "own::effect"; }

/// Whether the model ran it in its backward: by its mark, or, without a mark, because it comes after the forward.
bool ran_in_backward(const JointGraph& graph, size_t node) {
  const JointMark mark = graph.nodes[node].mark;
  if (mark != JointMark::None) return mark == JointMark::IsBackward || mark == JointMark::MustBeInBackward;
  bool marked = false, before_forward = false;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].kind != JointKind::Call || graph.nodes[i].mark != JointMark::IsForward) continue;
    marked = true;
    before_forward |= node < i;
  }
  for (const NodeIndex output : graph.forward_outputs()) before_forward |= node <= static_cast<size_t>(output);
  return marked && !before_forward;
}

bool tagged_recompute(const JointNode& node) {
  return node.recompute == CheckpointPolicy::MustRecompute || node.recompute == CheckpointPolicy::PreferRecompute;
}

CutResult fewest(const JointGraph& graph) {
  const JointEdges edges = edges_of(graph);
  const Policy policy;
  OpClasses ops = classify_ops(graph, policy);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    ops.compute_intensive[i] = intensive(graph.nodes[i]);
    ops.random[i] = random_call(graph.nodes[i]);
  }
  const NodeClasses classes = classify_nodes(graph, edges, policy, ops, {});
  return min_bytes_cut({graph, edges, policy, ops, classes});
}

struct Price {
  int64_t bytes = 0;
  int scalars = 0;
  auto operator<=>(const Price&) const = default;
};

/// An independent judge: models graphs and what a model does when it runs, and knows nothing of cuts.
class Judge {
 public:
  explicit Judge(const JointGraph& graph) : graph_(graph), of_backward_(graph.nodes.size()), forward_(of_backward_) {
    std::vector<NodeIndex> run_by_model;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const JointNode& node = graph.nodes[i];
      // Draws and effects happen when the model did them; values that depend on one in the backward do not exist
      // earlier.
      const bool event = random_call(node) || effect(node);
      of_backward_[i] = node.kind == JointKind::Tangent || node.mark == JointMark::MustBeInBackward ||
                        (event && ran_in_backward(graph, i));
      for_each_input(node, [&](NodeIndex input) { of_backward_[i] |= of_backward_[input]; });
      if (event) (of_backward_[i] ? asked_ : run_by_model).push_back(static_cast<NodeIndex>(i));
    }
    asked_.insert(asked_.end(), graph.backward_outputs().begin(), graph.backward_outputs().end());
    std::erase(asked_, kNoNode);
    for (const NodeIndex output : graph.forward_outputs()) mark_forward(output);
    for (const NodeIndex i : run_by_model) mark_forward(i);
    for (const NodeIndex i : reached_by_backward())
      if (graph.nodes[i].mark == JointMark::MustBeInForward && !of_backward_[i]) mark_forward(i);
  }

  /// Every node that the backward would need if nothing was saved.
  std::set<NodeIndex> reached_by_backward() const {
    std::set<NodeIndex> reached;
    std::vector<NodeIndex> ask = asked_;
    while (!ask.empty()) {
      const NodeIndex i = ask.back();
      ask.pop_back();
      if (!reached.insert(i).second) continue;
      for_each_input(graph_.nodes[i], [&](NodeIndex input) { ask.push_back(input); });
    }
    return reached;
  }

  bool can_be_saved(NodeIndex i) const {
    const JointNode& node = graph_.nodes[i];
    const bool value = node.out.kind == JointResult::Kind::Tensor || node.out.kind == JointResult::Kind::Scalar;
    return !of_backward_[i] && node.kind != JointKind::Primal && value && !tagged_recompute(node);
  }

  /// The bytes of the storages behind `saved` (primals free), and the number of scalars.
  Price price(const std::vector<char>& saved) const {
    std::set<int32_t> storages;
    Price price;
    for (size_t i = 0; i < saved.size(); ++i) {
      if (!saved[i]) continue;
      if (graph_.nodes[i].out.kind == JointResult::Kind::Scalar)
        ++price.scalars;
      else
        storages.insert(graph_.nodes[i].out.storage);
    }
    for (const JointNode& node : graph_.nodes)
      if (node.kind == JointKind::Primal) storages.erase(node.out.storage);
    for (const int32_t storage : storages) price.bytes += graph_.storage_bytes[storage];
    return price;
  }

  /// The calls that the backward runs given `saved`, if it can without repeating a call that must run once. Primals
  /// exist.
  std::optional<std::vector<char>> run_backward(const std::vector<char>& saved) const {
    std::vector<char> made(graph_.nodes.size(), 0);
    std::vector<NodeIndex> ask = asked_;
    while (!ask.empty()) {
      const NodeIndex i = ask.back();
      ask.pop_back();
      if (made[i] || saved[i]) continue;
      const JointNode& node = graph_.nodes[i];
      if (node.is_input()) continue;
      const bool once =
          node.recompute == CheckpointPolicy::MustSave || node.mark == JointMark::MustBeInForward || effect(node);
      const bool costly = (intensive(node) || random_call(node)) && !tagged_recompute(node);
      if (!of_backward_[i] && (once || (forward_[i] && costly))) return std::nullopt;
      made[i] = 1;
      for_each_input(node, [&](NodeIndex input) { ask.push_back(input); });
    }
    return made;
  }

 private:
  void mark_forward(NodeIndex i) {
    if (forward_[i]) return;
    forward_[i] = 1;
    for_each_input(graph_.nodes[i], [&](NodeIndex input) { mark_forward(input); });
  }

  const JointGraph& graph_;
  std::vector<char> of_backward_, forward_;
  std::vector<NodeIndex> asked_;  ///< what the backward must produce whatever is saved
};

std::vector<char> flags(size_t n, const std::vector<NodeIndex>& nodes) {
  std::vector<char> set(n, 0);
  for (const NodeIndex node : nodes) set[node] = 1;
  return set;
}

struct Best {
  std::optional<Price> price;                 ///< unset: no set of values suffices
  std::vector<std::vector<char>> recomputed;  ///< for every best set: the calls that the backward runs
};

/// Searches all sets of values, in which each view counts as a separate value. nullopt if there are too many values.
std::optional<Best> best_of_all(const JointGraph& graph, const Judge& judge) {
  const size_t n = graph.nodes.size();
  std::vector<NodeIndex> choices;
  for (const NodeIndex i : judge.reached_by_backward())
    if (judge.can_be_saved(i)) choices.push_back(i);
  if (choices.size() > 13) return std::nullopt;
  Best best;
  for (uint32_t set = 0; set < 1u << choices.size(); ++set) {
    std::vector<char> saved(n, 0);
    for (size_t c = 0; c < choices.size(); ++c) saved[choices[c]] = set >> c & 1;
    const Price price = judge.price(saved);
    if (best.price && price > *best.price) continue;
    const auto made = judge.run_backward(saved);
    if (!made) continue;
    if (best.price != price) best = {.price = price, .recomputed = {}};
    best.recomputed.push_back(*made);
  }
  return best;
}

/// A view is saved as its base and recomputed from it, which then also needs the scalars that the view reads.
bool some_view_reads_a_scalar(const JointGraph& graph) {
  bool found = false;
  for (const JointNode& node : graph.nodes)
    if (node.view)
      for_each_input(node, [&](NodeIndex i) { found |= graph.nodes[i].out.kind == JointResult::Kind::Scalar; });
  return found;
}

/// `made` without calls that only make views.
std::vector<char> kernels(const JointGraph& graph, std::vector<char> made) {
  for (size_t i = 0; i < made.size(); ++i)
    if (graph.nodes[i].view || graph.nodes[i].kind == JointKind::GetItem) made[i] = 0;
  return made;
}

void check_against_every_set(const testing::RandomJointOptions& options, unsigned first_seed, int wanted) {
  int judged = 0;
  for (unsigned seed = first_seed; judged < wanted; ++seed) {
    std::mt19937 random(seed);
    const JointGraph graph = testing::random_joint_graph(random, options);
    const Judge judge(graph);
    const std::optional<Best> best = best_of_all(graph, judge);
    if (!best) continue;
    ++judged;
    if (!best->price) {
      EXPECT_THROW(fewest(graph), InputError) << "seed " << seed;
      continue;
    }
    CutResult cut;
    try {
      cut = fewest(graph);
    } catch (const InputError& refused) {
      ADD_FAILURE() << "seed " << seed << ": " << refused.what();
      continue;
    }
    const std::vector<char> saved = flags(graph.nodes.size(), cut.saved);
    std::string names;
    for (const NodeIndex node : cut.saved) names += " " + graph.nodes[node].name;
    SCOPED_TRACE("seed " + std::to_string(seed) + ", saved:" + names + "\n" + testing::to_text(graph));
    EXPECT_EQ(judge.price(saved).bytes, best->price->bytes);
    const bool scalars_follow = some_view_reads_a_scalar(graph);
    if (!scalars_follow) {
      EXPECT_EQ(judge.price(saved).scalars, best->price->scalars);
    }
    const auto made = judge.run_backward(saved);
    if (!made) {
      ADD_FAILURE() << "the backward cannot run with the saved values";
      continue;
    }
    // No other best set runs fewer kernels: each one runs at least the calls that ours runs.
    const std::vector<char> ours = kernels(graph, *made);
    if (scalars_follow) continue;
    for (const std::vector<char>& other : best->recomputed) {
      const std::vector<char> theirs = kernels(graph, other);
      for (size_t i = 0; i < ours.size(); ++i)
        EXPECT_LE(ours[i], theirs[i]) << graph.nodes[i].name << " need not be recomputed";
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(MinBytes, IsTheBestOfEverySet) { check_against_every_set({}, 0, 3000); }

TEST(MinBytes, IsTheBestOfEverySetWithManyViews) {
  check_against_every_set({.forward_calls = 9, .views = 0.5, .multi = 0.25}, 10000, 2000);
}

TEST(MinBytes, IsTheBestOfEverySetWithTags) {
  check_against_every_set({.views = 0.4, .multi = 0.2, .tags = 0.4}, 20000, 3000);
}

TEST(MinBytes, IsTheBestOfEverySetWhereTheBackwardUsesMuchOfTheForward) {
  check_against_every_set({.backward_calls = 14, .views = 0.3, .unclaimed = 0.35}, 30000, 2000);
}

TEST(MinBytes, IsTheBestOfEverySetWithEffectsNumbersAndMarks) {
  check_against_every_set({.views = 0.2,
                           .seeded = 0.2,
                           .unclaimed = 0.3,
                           .tags = 0.15,
                           .effects = 0.12,
                           .scalars = 0.1,
                           .unmarked = 0.15,
                           .bound = 0.08},
                          40000, testing::in_full_or_sample(10000, 3000));
}

// --- by hand ---------------------------------------------------------------------------------------------------------

using Names = std::vector<std::string>;

Names saved_names(const JointGraph& graph) {
  Names names;
  for (const NodeIndex node : fewest(graph).saved) names.push_back(graph.nodes[node].name);
  return names;
}

TEST(MinBytes, SavesTheSmallValueThatABigOneIsMadeOf) {
  // mm of one column, expanded eight times, forty additions, cos: a cut that weighs distance saves the large end.
  JointGraphBuilder build;
  const NodeIndex x = build.primal(1024 * 4 * 8), w = build.primal(32);
  const NodeIndex tangent = build.tangent(32768);
  const NodeIndex mm = build.call("mm", {x, w}, 4096);
  NodeIndex value = build.view("expand", mm, 32768);
  for (int i = 0; i < 40; ++i) value = build.call("add", {value, value}, 32768);
  const NodeIndex cos = build.call("cos", {value}, 32768);
  build.begin_backward();
  const NodeIndex sin = build.call("sin", {value}, 32768);
  const NodeIndex mul = build.call("mul", {tangent, sin}, 32768);
  const NodeIndex sum = build.call("sum", {mul}, 4096);
  const NodeIndex gradient = build.call("mm", {x, sum}, 32);
  const JointGraph graph = build.graph({cos}, {kNoNode, gradient});
  EXPECT_EQ(saved_names(graph), (Names{"primals_1", "mm"}));
}

TEST(MinBytes, PaysForAStorageOnce) {
  // Two views of the same product are needed, each smaller than any value that could be saved instead of both.
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64);
  const NodeIndex mm = build.call("mm", {x}, 64);
  const NodeIndex t = build.view("t", mm), slice = build.view("slice", mm, 32);
  const NodeIndex out = build.call("add", {t, slice}, 64);
  build.begin_backward();
  const NodeIndex a = build.call("mul", {tangent, t}, 64), b = build.call("mul", {a, slice}, 64);
  const JointGraph graph = build.graph({out}, {b});
  EXPECT_EQ(saved_names(graph), (Names{"mm"}));
}

TEST(MinBytes, SavesAPrimalRatherThanItsView) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), w = build.primal(256), tangent = build.tangent(64);
  const NodeIndex t = build.view("t", w), out = build.call("mm", {x, t}, 64);
  build.begin_backward();
  const NodeIndex gradient = build.call("mm", {tangent, t}, 64);
  EXPECT_EQ(saved_names(build.graph({out}, {gradient})), (Names{"primals_2"}));
}

TEST(MinBytes, MustRecomputeBasesAreSavedThroughTheirViews) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(8);
  const NodeIndex big = build.call("mm", {x}, 64), small = build.call("sum", {big}, 8);
  const NodeIndex view = build.view("view", small), other = build.view("t", small);
  const NodeIndex out = build.call("add", {view, other}, 8);
  build.begin_backward();
  const NodeIndex gradient = build.call("where", {tangent, view, other}, 8);
  build.at(small).recompute = CheckpointPolicy::MustRecompute;
  EXPECT_EQ(saved_names(build.graph({out}, {gradient})), (Names{"view", "t"}));
  build.at(view).recompute = build.at(other).recompute = CheckpointPolicy::PreferRecompute;
  EXPECT_EQ(saved_names(build.graph({out}, {gradient})), (Names{"mm"}));
  build.at(big).recompute = CheckpointPolicy::MustRecompute;
  EXPECT_EQ(saved_names(build.graph({out}, {gradient})), (Names{"primals_1"}));
}

TEST(MinBytes, ATagOnAViewHoldsForItsStorage) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64);
  const NodeIndex cos = build.call("cos", {x}, 64), view = build.view("view", cos);
  const NodeIndex out = build.call("sin", {view}, 64);
  build.begin_backward();
  const NodeIndex gradient = build.call("mul", {tangent, view}, 64);
  EXPECT_EQ(saved_names(build.graph({out}, {gradient})), (Names{"primals_1"}));
  build.at(view).recompute = CheckpointPolicy::MustSave;
  EXPECT_EQ(saved_names(build.graph({out}, {gradient})), (Names{"cos"}));
}

TEST(MinBytes, OfEqualBytesTheFewestSymbolsAreSaved) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64);
  const NodeIndex first = build.call("mm", {x}, 64), size = build.integer("sym_size", {first}, 4);
  const NodeIndex twice = build.integer("operator::mul", {size}, 8), more = build.integer("operator::add", {size}, 5);
  const NodeIndex mm = build.call("mm", {x, twice, more}, 64);
  build.begin_backward();
  const NodeIndex gradient = build.call("where", {tangent, twice, more}, 64);
  EXPECT_EQ(saved_names(build.graph({mm}, {gradient})), (Names{"sym_size"}));
}

TEST(MinBytes, SaysWhatCanNeitherBeSavedNorComputedAgain) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64);
  const std::vector<NodeIndex> parts = build.multi("native_dropout", {x}, {64, 16});
  const NodeIndex scaled = build.call("mul", {parts[0]}, 64);
  build.begin_backward();
  const NodeIndex gradient = build.call("mul", {tangent, parts[1]}, 64);
  build.at(parts[1]).recompute = CheckpointPolicy::MustRecompute;
  testing::expect_part(
      testing::refusal([&] { fewest(build.graph({scaled}, {gradient})); }),
      "'native_dropout' (cannot be saved because it has several results, cannot be recomputed because it "
      "is random) -> 'getitem_1' (cannot be saved because it is tagged to be recomputed)");
}

TEST(MinBytes, WhatTheModelDrewOrDidInItsBackwardIsTheBackwards) {
  // The noise is the smallest value, yet it is not drawn in the forward; its input is saved instead.
  for (const char* op : {"native_dropout", "own::effect"}) {
    JointGraphBuilder build;
    const NodeIndex x = build.primal(64), tangent = build.tangent(64), mm = build.call("mm", {x}, 64);
    build.begin_backward();
    const NodeIndex noise = build.call(op, {mm}, 4), gradient = build.call("mul", {tangent, noise}, 64);
    build.at(noise).seeded = build.at(noise).op == "aten::native_dropout";
    build.at(noise).impure = true;
    EXPECT_EQ(saved_names(build.graph({mm}, {gradient})), Names{"mm"}) << op;
    // If the noise belongs to the forward, the forward draws it anyway.
    build.at(noise).mark = JointMark::IsForward;
    EXPECT_EQ(saved_names(build.graph({mm}, {gradient})), Names{build.at(noise).name}) << op;
  }
}

TEST(MinBytes, AttentionWithoutDropoutIsNotRandom) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64);
  const NodeIndex y = build.call("_scaled_dot_product_flash_attention_for_cpu", {x, x, x}, 64);
  build.begin_backward();
  const NodeIndex gradient = build.call("mul", {tangent, y}, 64);
  build.at(y).seeded = build.at(y).impure = true;
  EXPECT_EQ(saved_names(build.graph({y}, {gradient})), Names{"primals_1"});
  build.at(y).kwargs.emplace_back("dropout_p", JointArgument{.kind = JointArgument::Kind::Float, .real = 0.1});
  EXPECT_EQ(saved_names(build.graph({y}, {gradient})), Names{"_scaled_dot_product_flash_attention_for_cpu"});
}

TEST(MinBytes, AnEffectIsNotRepeated) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64), y = build.call("own::log", {x}, 64);
  build.begin_backward();
  const NodeIndex gradient = build.call("mul", {tangent, y}, 64);
  EXPECT_EQ(saved_names(build.graph({y}, {gradient})), Names{"primals_1"});
  build.at(y).impure = true;
  EXPECT_EQ(saved_names(build.graph({y}, {gradient})), Names{"log"});
  build.at(y).recompute = CheckpointPolicy::MustRecompute;
  testing::expect_part(
      testing::refusal([&] { fewest(build.graph({y}, {gradient})); }),
      "'log' (cannot be saved because it is tagged to be recomputed, cannot be recomputed because it has "
      "effects)");
}

TEST(MinBytes, AnInputThatIsOverwrittenIsNotSaved) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64);
  const NodeIndex cos = build.call("cos", {x}, 64);
  const NodeIndex out = build.call("mul", {cos}, 64);
  build.begin_backward();
  const NodeIndex gradient = build.call("mul", {tangent, cos}, 64);
  EXPECT_EQ(saved_names(build.graph({out}, {gradient})), (Names{"primals_1"}));
  build.at(x).epilogue_mutation = true;
  EXPECT_EQ(saved_names(build.graph({out}, {gradient})), (Names{"cos"}));
}

}  // namespace
}  // namespace plumbline::partition
