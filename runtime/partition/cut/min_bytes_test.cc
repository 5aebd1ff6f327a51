// min_bytes_cut() against trying every set of values that could be saved.
#include "runtime/partition/cut/min_bytes.h"

#include <gtest/gtest.h>

#include <bit>
#include <optional>
#include <set>

#include "runtime/error.h"
#include "runtime/partition/testing/random_joint_graph.h"

namespace plumbline {
namespace {

using testing::JointGraphBuilder;

/// What may not run again, in these tests; without the tables that policies are read from.
bool intensive(const JointNode& node) { return node.op == "aten::mm"; }
bool random_call(const JointNode& node) { return node.op == "aten::native_dropout"; }

bool tagged_recompute(const JointNode& node) {
  return node.recompute == CheckpointPolicy::MustRecompute || node.recompute == CheckpointPolicy::PreferRecompute;
}

CutResult fewest(const JointGraph& graph) {
  const JointEdges edges = edges_of(graph);
  Policy policy;
  OpClasses ops;
  for (const JointNode& node : graph.nodes) {
    ops.compute_intensive.push_back(intensive(node));
    ops.random.push_back(random_call(node));
  }
  const NodeClasses classes = classify_nodes(graph, edges, policy, {});
  return min_bytes_cut({graph, edges, policy, ops, classes});
}

/// The judge: knows graphs, and nothing of cuts.
class Judge {
 public:
  explicit Judge(const JointGraph& graph) : graph_(graph), of_tangent_(graph.nodes.size()), forward_(of_tangent_) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      of_tangent_[i] = graph.nodes[i].kind == JointKind::Tangent;
      for_each_input(graph.nodes[i], [&](NodeIndex input) { of_tangent_[i] |= of_tangent_[input]; });
    }
    for (const NodeIndex output : graph.forward_outputs()) mark_forward(output);
    // A draw is made where the model made it, whoever uses it.
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      if (random_call(graph.nodes[i]) && !of_tangent_[i]) mark_forward(static_cast<NodeIndex>(i));
  }

  bool can_be_saved(NodeIndex i) const {
    const JointNode& node = graph_.nodes[i];
    return !of_tangent_[i] && node.kind != JointKind::Primal && node.out.kind == JointResult::Kind::Tensor &&
           !tagged_recompute(node);
  }

  /// Bytes of the storages behind `saved`, primals free.
  int64_t bytes(const std::vector<char>& saved) const {
    std::set<int32_t> storages;
    for (size_t i = 0; i < saved.size(); ++i)
      if (saved[i]) storages.insert(graph_.nodes[i].out.storage);
    for (const JointNode& node : graph_.nodes)
      if (node.kind == JointKind::Primal) storages.erase(node.out.storage);
    int64_t sum = 0;
    for (const int32_t storage : storages) sum += graph_.storage_bytes[storage];
    return sum;
  }

  /// The calls that the backward makes, if it can with this: nothing that may not run twice does. Primals are there.
  std::optional<std::vector<char>> run_backward(const std::vector<char>& saved) const {
    std::vector<char> made(graph_.nodes.size(), 0);
    std::vector<NodeIndex> ask(graph_.backward_outputs().begin(), graph_.backward_outputs().end());
    while (!ask.empty()) {
      const NodeIndex i = ask.back();
      ask.pop_back();
      if (i == kNoNode || made[i] || saved[i]) continue;
      const JointNode& node = graph_.nodes[i];
      if (node.is_input()) continue;
      const bool banned = node.recompute == CheckpointPolicy::MustSave ||
                          (intensive(node) && !tagged_recompute(node)) ||
                          (random_call(node) && !tagged_recompute(node));
      if (forward_[i] && banned) return std::nullopt;
      if (!forward_[i] && !of_tangent_[i] && node.recompute == CheckpointPolicy::MustSave) return std::nullopt;
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
  std::vector<char> of_tangent_, forward_;
};

std::vector<char> flags(size_t n, const std::vector<NodeIndex>& nodes) {
  std::vector<char> set(n, 0);
  for (const NodeIndex node : nodes) set[node] = 1;
  return set;
}

struct Best {
  int64_t bytes = -1;                         ///< -1: no set of values will do
  std::vector<std::vector<char>> recomputed;  ///< by every best set: what the backward runs
};

/// Every set of values; each node alone, views of one storage too.
Best best_of_all(const JointGraph& graph, const Judge& judge) {
  const size_t n = graph.nodes.size();
  // What no backward would ask for even if nothing was saved need not be tried.
  std::vector<char> asked(n, 0);
  for (const NodeIndex output : graph.backward_outputs())
    if (output != kNoNode) asked[output] = 1;
  for (size_t i = n; i-- > 0;)
    if (asked[i]) for_each_input(graph.nodes[i], [&](NodeIndex input) { asked[input] = 1; });
  std::vector<NodeIndex> choices;
  for (size_t i = 0; i < n; ++i)
    if (asked[i] && judge.can_be_saved(static_cast<NodeIndex>(i))) choices.push_back(static_cast<NodeIndex>(i));
  if (choices.size() > 13) return {.bytes = -2, .recomputed = {}};
  Best best;
  for (uint32_t set = 0; set < 1u << choices.size(); ++set) {
    std::vector<char> saved(n, 0);
    for (size_t c = 0; c < choices.size(); ++c) saved[choices[c]] = set >> c & 1;
    const int64_t bytes = judge.bytes(saved);
    if (best.bytes >= 0 && bytes > best.bytes) continue;
    const auto made = judge.run_backward(saved);
    if (!made) continue;
    if (best.bytes != bytes) best = {.bytes = bytes, .recomputed = {}};
    best.recomputed.push_back(*made);
  }
  return best;
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
    const Best best = best_of_all(graph, judge);
    if (best.bytes == -2) continue;
    ++judged;
    if (best.bytes == -1) {
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
    EXPECT_EQ(judge.bytes(saved), best.bytes);
    const auto made = judge.run_backward(saved);
    if (!made) {
      ADD_FAILURE() << "the backward cannot run with what is saved";
      continue;
    }
    // No other best set runs fewer kernels: what ours runs, all run.
    const std::vector<char> ours = kernels(graph, *made);
    for (const std::vector<char>& other : best.recomputed) {
      const std::vector<char> theirs = kernels(graph, other);
      for (size_t i = 0; i < ours.size(); ++i)
        EXPECT_LE(ours[i], theirs[i]) << graph.nodes[i].name << " need not run again";
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

// --- by hand ---------------------------------------------------------------------------------------------------------

std::vector<std::string> saved_names(const JointGraph& graph) {
  std::vector<std::string> names;
  for (const NodeIndex node : fewest(graph).saved) names.push_back(graph.nodes[node].name);
  return names;
}

TEST(MinBytes, SavesTheSmallValueThatABigOneIsMadeOf) {
  // mm of one column, expanded eight times, forty additions, cos: the cut that weighs distance saves the large end.
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
  EXPECT_EQ(saved_names(graph), (std::vector<std::string>{"primals_1", "mm"}));
}

TEST(MinBytes, PaysForAStorageOnce) {
  // Two views of the same product are needed, each smaller than what could be saved instead of both.
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64);
  const NodeIndex mm = build.call("mm", {x}, 64);
  const NodeIndex t = build.view("t", mm), slice = build.view("slice", mm, 32);
  const NodeIndex out = build.call("add", {t, slice}, 64);
  build.begin_backward();
  const NodeIndex a = build.call("mul", {tangent, t}, 64), b = build.call("mul", {a, slice}, 64);
  const JointGraph graph = build.graph({out}, {b});
  EXPECT_EQ(saved_names(graph), (std::vector<std::string>{"mm"}));
}

TEST(MinBytes, SavesAPrimalRatherThanItsView) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), w = build.primal(256), tangent = build.tangent(64);
  const NodeIndex t = build.view("t", w), out = build.call("mm", {x, t}, 64);
  build.begin_backward();
  const NodeIndex gradient = build.call("mm", {tangent, t}, 64);
  EXPECT_EQ(saved_names(build.graph({out}, {gradient})), (std::vector<std::string>{"primals_2"}));
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
  EXPECT_EQ(saved_names(build.graph({out}, {gradient})), (std::vector<std::string>{"view", "t"}));
  build.at(view).recompute = build.at(other).recompute = CheckpointPolicy::PreferRecompute;
  EXPECT_EQ(saved_names(build.graph({out}, {gradient})), (std::vector<std::string>{"mm"}));
  build.at(big).recompute = CheckpointPolicy::MustRecompute;
  EXPECT_EQ(saved_names(build.graph({out}, {gradient})), (std::vector<std::string>{"primals_1"}));
}

TEST(MinBytes, ATagOnAViewHoldsForItsStorage) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64);
  const NodeIndex cos = build.call("cos", {x}, 64), view = build.view("view", cos);
  const NodeIndex out = build.call("sin", {view}, 64);
  build.begin_backward();
  const NodeIndex gradient = build.call("mul", {tangent, view}, 64);
  EXPECT_EQ(saved_names(build.graph({out}, {gradient})), (std::vector<std::string>{"primals_1"}));
  build.at(view).recompute = CheckpointPolicy::MustSave;
  EXPECT_EQ(saved_names(build.graph({out}, {gradient})), (std::vector<std::string>{"cos"}));
}

TEST(MinBytes, OfEqualBytesTheFewestSymbolsAreSaved) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64);
  const NodeIndex first = build.call("mm", {x}, 64), size = build.integer("sym_size", {first}, 4);
  const NodeIndex twice = build.integer("operator::mul", {size}, 8), more = build.integer("operator::add", {size}, 5);
  const NodeIndex mm = build.call("mm", {x, twice, more}, 64);
  build.begin_backward();
  const NodeIndex gradient = build.call("where", {tangent, twice, more}, 64);
  EXPECT_EQ(saved_names(build.graph({mm}, {gradient})), (std::vector<std::string>{"sym_size"}));
}

TEST(MinBytes, SaysWhatCanNeitherBeSavedNorComputedAgain) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64);
  const std::vector<NodeIndex> parts = build.multi("native_dropout", {x}, {64, 16});
  const NodeIndex scaled = build.call("mul", {parts[0]}, 64);
  build.begin_backward();
  const NodeIndex gradient = build.call("mul", {tangent, parts[1]}, 64);
  build.at(parts[1]).recompute = CheckpointPolicy::MustRecompute;
  try {
    fewest(build.graph({scaled}, {gradient}));
    FAIL() << "accepted";
  } catch (const InputError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("'native_dropout' (cannot be saved because it has several results, cannot be computed again "
                        "because it is random) -> 'getitem_1' (cannot be saved because it is tagged to be recomputed)"),
              std::string::npos)
        << text;
  }
}

TEST(MinBytes, AnInputThatIsOverwrittenIsNotSaved) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64);
  const NodeIndex cos = build.call("cos", {x}, 64);
  const NodeIndex out = build.call("mul", {cos}, 64);
  build.begin_backward();
  const NodeIndex gradient = build.call("mul", {tangent, cos}, 64);
  EXPECT_EQ(saved_names(build.graph({out}, {gradient})), (std::vector<std::string>{"primals_1"}));
  build.at(x).epilogue_mutation = true;
  EXPECT_EQ(saved_names(build.graph({out}, {gradient})), (std::vector<std::string>{"cos"}));
}

}  // namespace
}  // namespace plumbline
