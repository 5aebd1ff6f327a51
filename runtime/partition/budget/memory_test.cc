// simulate_memory() compared with a recount at every step, and with values computed by hand.
#include "runtime/partition/budget/memory.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "runtime/partition/parity/partition_mode.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/testing/names_of.h"
#include "runtime/partition/testing/random_joint_graph.h"
#include "runtime/testing/refusal.h"

namespace plumbline::partition {
namespace {

using testing::JointGraphBuilder;

/// The calls that compute `outputs`, without those behind `given`; ascending.
std::vector<NodeIndex> calls_for(const JointGraph& graph, const std::set<NodeIndex>& given,
                                 const std::vector<NodeIndex>& outputs) {
  std::set<NodeIndex> calls;
  std::vector<NodeIndex> ask = outputs;
  while (!ask.empty()) {
    const NodeIndex i = ask.back();
    ask.pop_back();
    if (i == kNoNode || given.contains(i) || graph.nodes[i].is_input() || !calls.insert(i).second) continue;
    for_each_input(graph.nodes[i], [&](NodeIndex input) { ask.push_back(input); });
  }
  return {calls.begin(), calls.end()};
}

/// Forward and backward for the given saved values, in graph order.
Partition parts(const JointGraph& graph, const std::vector<NodeIndex>& saved) {
  Partition made;
  made.graph = graph;
  std::set<NodeIndex> given(saved.begin(), saved.end());
  const std::vector<NodeIndex> gradients(graph.backward_outputs().begin(), graph.backward_outputs().end());
  made.backward.ops = calls_for(graph, given, gradients);
  made.backward.outputs = gradients;
  std::set<NodeIndex> read(gradients.begin(), gradients.end());
  for (const NodeIndex op : made.backward.ops)
    for_each_input(graph.nodes[op], [&](NodeIndex input) { read.insert(input); });
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto node = static_cast<NodeIndex>(i);
    if (graph.nodes[i].kind == JointKind::Primal) {
      made.forward.inputs.push_back(node);
      given.insert(node);
    }
    if (read.contains(node) && given.contains(node)) made.saved.push_back(node);
  }
  made.backward.inputs = made.saved;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].kind == JointKind::Tangent) made.backward.inputs.push_back(static_cast<NodeIndex>(i));
  made.forward.outputs.assign(graph.forward_outputs().begin(), graph.forward_outputs().end());
  made.forward.outputs.insert(made.forward.outputs.end(), made.saved.begin(), made.saved.end());
  made.forward.ops = calls_for(graph, {}, made.forward.outputs);
  return made;
}

/// Recounts at every step which values exist and which memory they lie in.
class Recount {
 public:
  explicit Recount(const Partition& p) : p_(p), graph_(p.graph) {
    for (const JointNode& node : graph_.nodes)
      if (node.kind == JointKind::Primal || node.kind == JointKind::GetAttr) costless_.insert(node.out.storage);
  }

  std::vector<int64_t> bytes() const {
    std::vector<int64_t> all;
    for (size_t t = 0; t < p_.forward.ops.size(); ++t) {
      std::set<Block> blocks;
      for (size_t made = 0; made <= t; ++made)
        if (made == t || used_from(p_.forward, p_.forward.ops[made], t)) add(blocks, false, p_.forward.ops[made]);
      all.push_back(sum(blocks));
    }
    for (size_t t = 0; t < p_.backward.ops.size(); ++t) {
      std::set<Block> blocks;
      for (const NodeIndex output : graph_.forward_outputs()) add(blocks, false, output);
      for (const NodeIndex input : p_.backward.inputs)
        if (used_from(p_.backward, input, t)) add(blocks, true, input);
      for (size_t made = 0; made <= t; ++made)
        if (made == t || used_from(p_.backward, p_.backward.ops[made], t)) add(blocks, true, p_.backward.ops[made]);
      all.push_back(sum(blocks));
    }
    return all;
  }

 private:
  /// The origin of the memory: half, call, and which of its results.
  struct Block {
    bool backward;
    NodeIndex call;
    int item;
    auto operator<=>(const Block&) const = default;
  };

  static bool has(const std::vector<NodeIndex>& list, NodeIndex node) {
    return std::find(list.begin(), list.end(), node) != list.end();
  }

  bool used_from(const Subgraph& part, NodeIndex value, size_t t) const {
    if (has(part.outputs, value)) return true;
    for (size_t later = t; later < part.ops.size(); ++later) {
      bool reads = false;
      for_each_input(graph_.nodes[part.ops[later]], [&](NodeIndex input) { reads |= input == value; });
      if (reads) return true;
    }
    return false;
  }

  void add(std::set<Block>& blocks, bool backward, NodeIndex node) const {
    const JointResult& out = graph_.nodes[node].out;
    const int items = out.kind == JointResult::Kind::Tuple ? static_cast<int>(out.items.size()) : 1;
    for (int item = 0; item < items; ++item) {
      const int32_t storage = items == 1 && out.items.empty() ? out.storage : out.items[item].storage;
      if (!costless_.contains(storage)) blocks.insert(behind(backward, node, item, storage));
    }
  }

  Block behind(bool backward, NodeIndex node, int item, int32_t storage) const {
    if (backward && has(p_.saved, node)) return behind(false, node, item, storage);
    const JointNode& made = graph_.nodes[node];
    if (made.kind == JointKind::GetItem)
      return behind(backward, made.args[0].node, static_cast<int>(made.args[1].integer), storage);
    std::vector<NodeIndex> inputs;
    for_each_input(made, [&](NodeIndex input) { inputs.push_back(input); });
    for (const NodeIndex input : inputs)
      if (graph_.nodes[input].out.kind == JointResult::Kind::Tensor && graph_.nodes[input].out.storage == storage)
        return behind(backward, input, 0, storage);
    return {backward, node, item};
  }

  int64_t sum(const std::set<Block>& blocks) const {
    int64_t bytes = 0;
    for (const Block& block : blocks) {
      const JointResult& out = graph_.nodes[block.call].out;
      bytes += graph_.storage_bytes[out.items.empty() ? out.storage : out.items[block.item].storage];
    }
    return bytes;
  }

  const Partition& p_;
  const JointGraph& graph_;
  std::set<int32_t> costless_;
};

TEST(SimulateMemory, IsACountFromScratchAtEveryMoment) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    const JointGraph graph = testing::random_joint_graph(random, {.forward_calls = 10, .views = 0.35, .multi = 0.25});
    std::vector<char> of_tangent(graph.nodes.size());
    std::vector<NodeIndex> saved;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      of_tangent[i] = graph.nodes[i].kind == JointKind::Tangent;
      for_each_input(graph.nodes[i], [&](NodeIndex input) { of_tangent[i] |= of_tangent[input]; });
      const bool tensor = graph.nodes[i].out.kind == JointResult::Kind::Tensor;
      if (!of_tangent[i] && tensor && random() % 3 == 0) saved.push_back(static_cast<NodeIndex>(i));
    }
    const Partition partition = parts(graph, saved);
    const MemoryProfile profile = simulate_memory(partition);
    const std::vector<int64_t> expected = Recount(partition).bytes();
    ASSERT_EQ(profile.bytes, expected) << "seed " << seed;
    ASSERT_EQ(profile.backward_begin, partition.forward.ops.size());
    int64_t peak = profile.between;
    for (const int64_t bytes : expected) peak = std::max(peak, bytes);
    ASSERT_EQ(profile.peak, peak) << "seed " << seed;
  }
}

TEST(SimulateMemory, CountsByHand) {
  // y = sin(cos(x)); the backward recomputes cos.
  JointGraphBuilder build;
  const NodeIndex x = build.primal(1000), tangent = build.tangent(100);
  const NodeIndex cos = build.call("cos", {x}, 100), view = build.view("view", cos), y = build.call("sin", {view}, 100);
  build.begin_backward();
  const NodeIndex a = build.call("mul", {tangent, view}, 100), b = build.call("neg", {a}, 100);
  const JointGraph graph = build.graph({y}, {b});

  // cos; its view; then also y. cos and its view again, beside y and the tangent; then also a; b beside y and a only.
  const MemoryProfile again = simulate_memory(parts(graph, {}));
  EXPECT_EQ(again.bytes, (std::vector<int64_t>{100, 100, 200, 300, 300, 400, 300}));
  EXPECT_EQ(again.backward_begin, 3u);
  EXPECT_EQ(again.between, 100);
  EXPECT_EQ(again.saved_storage, 0);
  EXPECT_EQ(again.saved_nodes, 1000);  // x, by PyTorch's count
  EXPECT_EQ(again.peak, 400);
  EXPECT_EQ(again.peak_at, 5u);

  const MemoryProfile kept = simulate_memory(parts(graph, {cos, view}));
  EXPECT_EQ(kept.bytes, (std::vector<int64_t>{100, 100, 200, 400, 300}));
  EXPECT_EQ(kept.between, 200);
  EXPECT_EQ(kept.saved_storage, 100);
  EXPECT_EQ(kept.saved_nodes, 100);
}

/// The gradient of a softmax may overwrite its argument, unless a later call reads the argument, another value shares
/// its memory, or it is a tangent, which the caller owns.
TEST(SimulateMemory, AGradientWrittenOverAnotherNeedsNoRoom) {
  enum Case { Alone, ReadLater, ViewedLater, Tangent, OtherForm };
  for (const Case c : {Alone, ReadLater, ViewedLater, Tangent, OtherForm}) {
    JointGraphBuilder build;
    const NodeIndex x = build.primal(1000), tangent = build.tangent(100), y = build.call("_softmax", {x}, 100);
    build.begin_backward();
    const NodeIndex a = c == Tangent ? tangent : build.call("mul", {tangent}, 100);
    const NodeIndex viewed = c == ViewedLater ? build.view("view", a) : a;
    const NodeIndex b = build.call("_softmax_backward_data", {a, y}, c == OtherForm ? 101 : 100);
    const NodeIndex d = c == ReadLater || c == ViewedLater ? build.call("mul", {b, viewed}, 100) : b;
    const MemoryProfile profile = simulate_memory(parts(build.graph({y}, {d}), {y}), /*overwriting=*/true);
    // The caller owns the output.
    EXPECT_EQ(profile.bytes[profile.bytes.size() - (d == b ? 1 : 2)], c == Alone       ? 200
                                                                      : c == OtherForm ? 301
                                                                                       : 300)
        << c;
  }
}

/// x -> ((a, b), c), like an operator that returns a tensor and a list: y = c, and the gradient reads b.
TEST(SimulateMemory, TuplesMayHoldTuples) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(16), tangent = build.tangent(100);
  const std::vector<NodeIndex> outer = build.multi("custom::cells", {x}, {0, 1000});
  const std::vector<NodeIndex> inner = build.multi("custom::cells", {x}, {10, 20});
  JointNode& call = build.at(outer[0] - 1);
  JointNode& pair = build.at(outer[0]);
  call.out.items[0] = pair.out = build.at(inner[0] - 1).out;
  pair.multi_output = true;
  for (const NodeIndex item : inner) build.at(item).args[0].node = outer[0];
  build.begin_backward();
  const NodeIndex gradient = build.call("mul", {tangent, inner[1]}, 100);
  JointGraph graph = build.graph({outer[1]}, {gradient});
  verify(graph);
  // 1030 for the call; 1000 and 20 stay, beside the tangent and the gradient.
  for (const char* mode : {"default", "min-cut", "bytes", "budget=1:peak"})
    for (const char* policy : {"torch-2.15", "seed"}) {
      const Partition made = partition(graph, load_policy(policy), parse_partition_mode(mode));
      if (std::string(mode) == "bytes") {  // the call is recomputed: its results are held beside the output
        EXPECT_EQ(simulate_memory(made).peak, 1000 + 100 + 1030) << policy;
        continue;
      }
      EXPECT_EQ(testing::names_of(made.graph, made.saved), std::vector<std::string>{"getitem_3"})
          << mode << " " << policy;
      EXPECT_EQ(simulate_memory(made).peak, 1000 + 20 + 100 + 100) << mode << " " << policy;
      EXPECT_EQ(simulate_memory(made).between, 1020) << mode << " " << policy;
    }

  graph.nodes[outer[0]].out.items.pop_back();
  EXPECT_EQ(testing::refusal([&] { verify(graph); }),
            "node 'getitem' is not made as result 0 of 'cells' is: expected a tuple of as many results where that is "
            "one");
}

}  // namespace
}  // namespace plumbline::partition
