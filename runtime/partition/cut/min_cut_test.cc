#include "runtime/partition/cut/min_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/testing/random_joint_graph.h"
#include "runtime/testing/refusal.h"

namespace plumbline::partition {
namespace {

using testing::JointGraphBuilder;
using Names = std::vector<std::string>;

struct NamedCut {
  Names saved, banned;
};

NamedCut cut(const JointGraph& graph, const Policy& policy, const std::vector<int>& statics = {},
             const CutRules* rules = nullptr) {
  const JointEdges edges = edges_of(graph);
  const OpClasses ops = classify_ops(graph, policy);
  const NodeClasses classes = classify_nodes(graph, edges, policy, ops, statics);
  const CutResult result = min_cut({graph, edges, policy, ops, classes}, rules ? *rules : policy.bans);
  NamedCut named;
  for (const NodeIndex i : result.saved) named.saved.push_back(graph.nodes[i].name);
  for (const NodeIndex i : result.banned) named.banned.push_back(graph.nodes[i].name);
  return named;
}

Names saved(const JointGraph& graph, const std::string& policy = "torch-2.15", const std::vector<int>& statics = {}) {
  return cut(graph, load_policy(policy), statics).saved;
}

/// tangent * -sin(x), the backward of cos.
NodeIndex cos_backward(JointGraphBuilder& build, NodeIndex tangent, NodeIndex x) {
  const int64_t bytes = build.at(x).out.bytes;
  return build.call("mul", {tangent, build.call("neg", {build.call("sin", {x}, bytes)}, bytes)}, bytes);
}

// --- weights and ties ------------------------------------------------------------------------------------------------

TEST(MinCut, OfEquallyHeavyNodesTheLaterIsSaved) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), w = build.primal(400), tangent = build.tangent(64);
  const NodeIndex mm = build.call("mm", {x, w}, 400);
  build.begin_backward();
  const NodeIndex exp = build.call("exp", {mm}, 64), neg = build.call("neg", {exp}, 64);
  EXPECT_EQ(saved(build.graph({mm}, {build.call("mul", {tangent, neg}, 64)})), Names{"neg"});
}

TEST(MinCut, DistanceOutweighsBytes) {  // 32768 bytes are saved where 4096 would suffice
  JointGraphBuilder build;
  const NodeIndex x = build.primal(4096), w = build.primal(4), tangent = build.tangent(32768);
  NodeIndex value = build.view("expand", build.call("mm", {x, w}, 4096), 32768);
  for (int i = 0; i < 40; ++i) value = build.call("add", {value}, 32768);
  const NodeIndex cos = build.call("cos", {value}, 32768);
  build.begin_backward();
  EXPECT_EQ(saved(build.graph({cos}, {cos_backward(build, tangent, value)})), Names{"neg"});
}

TEST(MinCut, ADistanceOf100CountsInFull) {  // 2 * 4 * 1.1^100 = 110244 against 2 * 48000 * 1.1; 1.1^99 would be less
  JointGraphBuilder build;
  const NodeIndex x = build.primal(4000), tangent = build.tangent(48000);
  NodeIndex value = build.call("cos", {x}, 4);
  for (int i = 0; i < 99; ++i) value = build.call("add", {value}, 48000);
  const NodeIndex last = build.call("exp", {value}, 48000);
  build.begin_backward();
  EXPECT_EQ(saved(build.graph({last}, {build.call("mul", {tangent, value}, 48000)})), Names{"add_98"});
}

TEST(MinCut, StaticPrimalsAreFreeButInTheSeed) {
  JointGraphBuilder build;
  const NodeIndex w = build.primal(4000), tangent = build.tangent(400);
  const NodeIndex small = build.call("sum", {w}, 400);
  build.begin_backward();
  const JointGraph graph = build.graph({small}, {build.call("mul", {tangent, small}, 400)});
  EXPECT_EQ(saved(graph), Names{"sum"});
  // A sum is banned as a reduction, so it is saved either way; the add is not banned.
  JointGraphBuilder other;
  const NodeIndex v = other.primal(1000), t = other.tangent(400);
  const NodeIndex half = other.call("add", {v}, 400);
  other.begin_backward();
  const JointGraph halved = other.graph({v}, {other.call("mul", {t, half}, 400)});
  EXPECT_EQ(saved(halved), Names{"add"});
  EXPECT_EQ(saved(halved, "torch-2.15", {0}), Names{"primals_1"});
  EXPECT_EQ(saved(halved, "seed", {0}), Names{"add"});
}

TEST(MinCut, SymbolicScalarsWeighOneAndFloatsFour) {
  const auto saved_of = [](types::Dtype dtype, const std::string& policy) {
    JointGraphBuilder build;
    const NodeIndex n = build.primal(4), tangent = build.tangent(64);
    build.at(n).out.kind = JointResult::Kind::Scalar;
    build.at(n).out.dtype = dtype;
    std::vector<NodeIndex> products;
    for (int i = 0; i < 3; ++i) products.push_back(build.integer("operator::mul", {n}, 4));
    build.begin_backward();
    return saved(build.graph({}, {build.call("expand", {tangent, products[0], products[1], products[2]}, 64)}), policy);
  };
  EXPECT_EQ(saved_of(types::Dtype::Int64, "torch-2.15"), Names{"primals_1"});  // 1 against 3
  // 4 against 3; newer versions do not even ban a symbolic float, so it need not be saved.
  EXPECT_EQ(saved_of(types::Dtype::Float64, "seed"), (Names{"mul", "mul_1", "mul_2"}));
  EXPECT_EQ(saved_of(types::Dtype::Float64, "torch-2.15"), Names{});
}

// --- bans ------------------------------------------------------------------------------------------------------------

TEST(MinCut, BansByDistanceAreTheSeedsAndNotInTaggedGraphs) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64);
  NodeIndex value = x;
  for (int i = 0; i < 6; ++i) value = build.call("exp", {value}, 64);
  const NodeIndex out = build.call("mm", {value, value}, 64);
  build.begin_backward();
  JointGraph graph = build.graph({out}, {build.call("mul", {tangent, value}, 64)});
  // Distances are 6 to 1, also for the product, because it is an output.
  EXPECT_EQ(cut(graph, load_policy("seed")).banned, (Names{"primals_1", "exp", "exp_1", "exp_2", "mm"}));
  EXPECT_EQ(cut(graph, load_policy("seed-nvfuser")).banned, (Names{"primals_1", "mm"}));
  EXPECT_EQ(cut(graph, load_policy("torch-2.15")).banned, (Names{"primals_1", "mm"}));
  const Policy seed = load_policy("seed");
  const CutRules aggressive = seed.aggressive(seed.bans);
  EXPECT_EQ(cut(graph, load_policy("seed"), {}, &aggressive).banned, (Names{"primals_1", "mm"}));
  graph.nodes[2].recompute = CheckpointPolicy::PreferRecompute;
  EXPECT_EQ(cut(graph, load_policy("seed")).banned, (Names{"primals_1", "mm"}));
  Policy near = load_policy("torch-2.15");
  near.distance.beyond = 3;
  EXPECT_EQ(cut(graph, near).banned, (Names{"primals_1", "exp_1", "exp_2", "mm"}));  // exp is tagged
}

TEST(MinCut, TagsBindInNewerVersionsAndOnlyLiftBansInTheSeed) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), w = build.primal(64), tangent = build.tangent(64);
  const NodeIndex mm = build.call("mm", {x, w}, 640), exp = build.call("exp", {mm}, 64);
  build.begin_backward();
  const NodeIndex mul = build.call("mul", {tangent, exp}, 64);
  build.at(mm).recompute = CheckpointPolicy::MustRecompute;
  const JointGraph graph = build.graph({exp}, {mul});
  // In the newer versions a node that must be recomputed needs its inputs, and a cut after it is possible too.
  EXPECT_EQ(saved(graph), (Names{"primals_1", "primals_2", "exp"}));
  EXPECT_EQ(cut(graph, load_policy("torch-2.15")).banned, (Names{"primals_1", "primals_2", "exp"}));
  EXPECT_EQ(saved(graph, "seed"), Names{"exp"});
}

// --- what cannot be cut ----------------------------------------------------------------------------------------------

TEST(MinCut, NamesWhatCanBeNeitherSavedNorComputedAgain) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64);
  const std::vector<NodeIndex> parts = build.multi("native_dropout", {x}, {64, 16});
  build.begin_backward();
  const NodeIndex mul = build.call("mul", {tangent, parts[0]}, 64);
  build.at(parts[0]).recompute = CheckpointPolicy::PreferRecompute;
  const JointGraph graph = build.graph({parts[0]}, {mul});
  EXPECT_EQ(
      testing::refusal([&] { saved(graph); }),
      "no partition exists: 'native_dropout' (aten::native_dropout) cannot be saved because it has several results, "
      "and cannot be recomputed because its operation is not among the recomputable ones; 'getitem' is tagged "
      "to be recomputed, and it needs 'native_dropout'");
}

TEST(MinCut, ExplainsLongerChains) {  // a tuple of a banned call, taken apart and reassembled in one call
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64);
  const std::vector<NodeIndex> parts = build.multi("native_dropout", {x}, {64, 16});
  const NodeIndex producer = parts[0] - 1;
  const std::vector<NodeIndex> again = build.multi("split_with_sizes", {producer}, {32, 32});
  build.begin_backward();
  const NodeIndex mul = build.call("mul", {tangent, again[0]}, 64);
  build.at(again[0]).recompute = CheckpointPolicy::MustRecompute;
  EXPECT_EQ(
      testing::refusal([&] { saved(build.graph({parts[0]}, {mul})); }),
      "no partition exists: 'native_dropout' (aten::native_dropout) cannot be saved because it has several results, "
      "and cannot be recomputed because its operation is not among the recomputable ones; 'split_with_sizes' "
      "(aten::split_with_sizes) cannot be saved because it has several results, and cannot be recomputed "
      "because it needs 'native_dropout'; 'getitem_2' is tagged to be recomputed, and it needs "
      "'split_with_sizes'");
}

TEST(MinCut, APrimalThatIsUpdatedAfterTheForwardIsNotSavedBy215) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64), sin = build.call("sin", {x}, 64);
  build.at(x).epilogue_mutation = true;
  build.begin_backward();
  const NodeIndex mul = build.call("mul", {tangent, sin}, 64);
  EXPECT_EQ(saved(build.graph({x}, {mul})), Names{"sin"});
  EXPECT_EQ(saved(build.graph({x}, {mul}), "torch-2.11"), Names{"primals_1"});
  const std::string why =
      "no partition exists: 'primals_1' cannot be saved because it is updated after the forward, "
      "and cannot be recomputed because it is an input of the forward, but ";
  EXPECT_EQ(testing::refusal([&] { saved(build.graph({sin}, {x})); }), why + "the backward returns it");
  const NodeIndex mul_1 = build.call("mul", {tangent, x}, 64);
  EXPECT_EQ(testing::refusal([&] { saved(build.graph({x}, {mul_1})); }),
            why + "'mul_1' (aten::mul) of the backward needs it");
}

TEST(MinCut, RefusesInputsThatAreNoTensorsByName) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64), state = build.primal(4);
  build.at(state).kind = JointKind::OtherInput;
  build.at(state).name = "backward_state";
  testing::expect_part(
      testing::refusal([&] { saved(build.graph({x}, {build.call("mul", {tangent, x}, 64)})); }),
      "input 'backward_state' of the joint graph is neither a tensor nor a symbolic size: a BackwardState");
}

// --- against brute force ---------------------------------------------------------------------------------------------

/// The lightest set of values from which the backward can be computed, by exhaustive search. Only compute-intensive and
/// random nodes are banned, and nothing is fusible, so that weights are bytes times 1.1 per step.
class BruteForceCut {
 public:
  BruteForceCut(const JointGraph& graph, const Policy& policy) : graph_(graph), edges_(edges_of(graph)) {
    const auto n = static_cast<NodeIndex>(graph.nodes.size());
    from_tangent_.assign(n, false);
    in_forward_.assign(n, false);
    for (NodeIndex i = 0; i < n; ++i) {
      const JointNode& node = graph.nodes[i];
      bool tangent = node.kind == JointKind::Tangent;
      for (const NodeIndex input : edges_.inputs(i)) tangent = tangent || from_tangent_[input];
      from_tangent_[i] = tangent;
    }
    for (const NodeIndex output : graph.forward_outputs()) in_forward_[output] = true;
    std::vector<int> distance(n, 1000);
    for (NodeIndex i = n; i-- > 0;) {
      const JointNode& node = graph.nodes[i];
      if (node.kind == JointKind::Primal) in_forward_[i] = true;
      for (const NodeIndex input : edges_.inputs(i))
        if (in_forward_[i]) in_forward_[input] = true;
    }
    for (NodeIndex i = n; i-- > 0;) {
      if (!in_forward_[i]) distance[i] = 0;
      for (const NodeIndex user : edges_.users(i))
        if (in_forward_[i]) distance[i] = std::min(distance[i], distance[user] + 1);
    }
    for (NodeIndex i = 0; i < n; ++i) {
      const JointNode& node = graph.nodes[i];
      weight_.push_back(static_cast<int64_t>(static_cast<double>(node.out.bytes) *
                                             std::pow(1.1, std::max(1, std::min(100, distance[i])))));
      banned_.push_back(
          node.kind == JointKind::Primal ||
          (in_forward_[i] && (policy.random.contains(node.op) || policy.compute_intensive.contains(node.op))));
      if (!from_tangent_[i] && node.out.kind == JointResult::Kind::Tensor) candidates_.push_back(i);
      if (!from_tangent_[i] && any_user_from_tangent(i)) needed_.push_back(i);
    }
    for (const NodeIndex output : graph.backward_outputs())
      if (output != kNoNode && !from_tangent_[output]) needed_.push_back(output);
  }

  size_t size() const { return candidates_.size(); }
  int64_t weight(const std::vector<NodeIndex>& nodes) const {
    int64_t sum = 0;
    for (const NodeIndex i : nodes) sum += weight_[i];
    return sum;
  }
  bool suffices(const std::vector<NodeIndex>& saved) const {
    std::vector<char> there(graph_.nodes.size(), 0);
    for (const NodeIndex i : saved) there[i] = 1;
    for (NodeIndex i = 0; i < std::ssize(graph_.nodes); ++i) {
      if (there[i] || banned_[i] || graph_.nodes[i].is_input()) continue;
      const auto inputs = edges_.inputs(i);
      there[i] = std::all_of(inputs.begin(), inputs.end(), [&](NodeIndex input) { return there[input]; });
    }
    return std::all_of(needed_.begin(), needed_.end(), [&](NodeIndex i) { return there[i]; });
  }
  int64_t least() const {
    int64_t least = INT64_MAX;
    for (uint32_t set = 0; set < (1u << size()); ++set) {
      std::vector<NodeIndex> nodes;
      for (size_t k = 0; k < size(); ++k)
        if (set >> k & 1) nodes.push_back(candidates_[k]);
      const int64_t sum = weight(nodes);
      if (sum < least && suffices(nodes)) least = sum;
    }
    return least;
  }

 private:
  bool any_user_from_tangent(NodeIndex i) const {
    const auto users = edges_.users(i);
    return std::any_of(users.begin(), users.end(), [&](NodeIndex user) { return from_tangent_[user]; });
  }

  const JointGraph& graph_;
  JointEdges edges_;
  std::vector<bool> from_tangent_, in_forward_, banned_;
  std::vector<int64_t> weight_;
  std::vector<NodeIndex> candidates_, needed_;
};

TEST(MinCut, NoLighterSetOfValuesSuffices) {
  Policy policy = load_policy("torch-2.15");
  policy.recomputable.clear();
  policy.recomputes_pointwise = false;
  policy.random = {};
  policy.view = {};
  policy.compute_intensive = {"aten::mm", "aten::native_dropout"};
  const CutRules rules{false, false, false, false, false};
  int tried = 0;
  for (int seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const JointGraph graph =
        testing::random_joint_graph(random, {.primals = 2, .forward_calls = 6, .backward_calls = 6});
    const BruteForceCut brute(graph, policy);
    if (brute.size() > 14) continue;
    const JointEdges edges = edges_of(graph);
    const OpClasses ops = classify_ops(graph, policy);
    const NodeClasses classes = classify_nodes(graph, edges, policy, ops, {});
    const CutResult result = min_cut({graph, edges, policy, ops, classes}, rules);
    EXPECT_TRUE(brute.suffices(result.saved));
    EXPECT_EQ(brute.weight(result.saved), brute.least());
    ++tried;
  }
  EXPECT_GT(tried, 100);
}

}  // namespace
}  // namespace plumbline::partition
