// The halves of a backward against the whole, by numbers: each value is the hash of its call and its arguments.
#include "runtime/partition/run/split_backward_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "runtime/partition/testing/random_joint_graph.h"

namespace plumbline::testing {
namespace {

using Hash = uint64_t;
using Values = std::map<partition::NodeIndex, Hash>;

Hash mix(Hash a, Hash b) { return (a ^ (b + 0x9e3779b97f4a7c15 + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccd; }

/// Runs `part` on `inputs`; a value that is not there fails the test.
std::vector<Hash> run(const partition::JointGraph& graph, const partition::Subgraph& part, Values values,
                      std::multiset<partition::NodeIndex>* ran = nullptr) {
  for (const partition::NodeIndex node : part.ops) {
    Hash value = std::hash<std::string>()(graph.nodes[node].op);
    partition::for_each_input(graph.nodes[node], [&](partition::NodeIndex input) {
      EXPECT_TRUE(values.contains(input)) << graph.nodes[node].name << " reads " << graph.nodes[input].name;
      value = mix(value, values[input]);
    });
    if (graph.nodes[node].kind == partition::JointKind::GetItem) value = mix(value, graph.nodes[node].args[1].integer);
    values[node] = value;
    if (ran) ran->insert(node);
  }
  std::vector<Hash> out;
  for (const partition::NodeIndex output : part.outputs) {
    EXPECT_TRUE(output == partition::kNoNode || values.contains(output)) << "an output that no node computes";
    out.push_back(output == partition::kNoNode ? 0 : values[output]);
  }
  return out;
}

Values numbered(const std::vector<partition::NodeIndex>& inputs) {
  Values values;
  for (const partition::NodeIndex input : inputs) values[input] = mix(17, input);
  return values;
}

/// Everything that the backward reads of the forward is saved; of the calls, half of those that could be run again are.
partition::Partition random_partition(std::mt19937& random, partition::JointGraph graph) {
  partition::Partition partition;
  std::vector<char> of_tangent(graph.nodes.size(), 0), needed(graph.nodes.size(), 0);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    of_tangent[i] = graph.nodes[i].kind == partition::JointKind::Tangent;
    partition::for_each_input(graph.nodes[i], [&](partition::NodeIndex input) { of_tangent[i] |= of_tangent[input]; });
  }
  for (const partition::NodeIndex output : graph.backward_outputs())
    if (output != partition::kNoNode) needed[output] = 1;
  for (partition::NodeIndex i = static_cast<partition::NodeIndex>(graph.nodes.size()) - 1; i >= 0; --i) {
    if (!needed[i]) continue;
    const partition::JointNode& node = graph.nodes[i];
    const bool again = !node.is_input() && (of_tangent[i] || node.multi_output ||
                                            node.kind == partition::JointKind::GetItem || random() % 2);
    if (again) {
      partition.backward.ops.push_back(i);
      partition::for_each_input(node, [&](partition::NodeIndex input) { needed[input] = 1; });
    } else {
      partition.backward.inputs.push_back(i);
    }
  }
  std::reverse(partition.backward.ops.begin(), partition.backward.ops.end());
  partition.backward.outputs.assign(graph.backward_outputs().begin(), graph.backward_outputs().end());
  partition.graph = std::move(graph);
  return partition;
}

TEST(SplitBackwardGraph, HalvesMakeWhatTheWholeMakes) {
  int moved = 0, shared = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const partition::Partition partition =
        random_partition(random, random_joint_graph(random, {.primals = 4, .backward_calls = 12}));
    std::vector<char> wanted(partition.backward.outputs.size());
    for (char& word : wanted) word = random() % 2;
    const partition::SplitBackward split = partition::split_backward_graph(partition, wanted);

    std::multiset<partition::NodeIndex> ran;
    const std::vector<Hash> whole = run(partition.graph, partition.backward, numbered(partition.backward.inputs));
    const std::vector<Hash> first = run(partition.graph, split.input_half, numbered(partition.backward.inputs), &ran);
    Values carried;
    ASSERT_EQ(first.size(), std::count(wanted.begin(), wanted.end(), 1) + split.carried.size());
    for (size_t i = 0; i < split.carried.size(); ++i)
      carried[split.carried[i]] = first[first.size() - split.carried.size() + i];
    const std::vector<Hash> second = run(partition.graph, split.weight_half, carried, &ran);
    size_t next_first = 0, next_second = 0;
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_EQ(wanted[i] ? first[next_first++] : second[next_second++], whole[i]) << "gradient " << i;

    EXPECT_EQ(ran, std::multiset<partition::NodeIndex>(partition.backward.ops.begin(), partition.backward.ops.end()));
    EXPECT_TRUE(std::is_sorted(split.input_half.ops.begin(), split.input_half.ops.end()));
    EXPECT_TRUE(std::is_sorted(split.weight_half.ops.begin(), split.weight_half.ops.end()));

    // The first half runs nothing but what the gradients asked for need.
    std::set<partition::NodeIndex> read;
    for (size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i]) read.insert(partition.backward.outputs[i]);
    for (const partition::NodeIndex node : split.input_half.ops)
      partition::for_each_input(partition.graph.nodes[node], [&](partition::NodeIndex n) { read.insert(n); });
    for (const partition::NodeIndex node : split.input_half.ops)
      EXPECT_TRUE(read.contains(node) || partition.graph.nodes[node].kind == partition::JointKind::GetItem)
          << partition.graph.nodes[node].name << " runs in the first half, where nothing reads it";
    moved += !split.weight_half.ops.empty();
    shared += std::any_of(split.carried.begin(), split.carried.end(),
                          [&](partition::NodeIndex n) { return ran.contains(n); });
  }
  EXPECT_GT(moved, 500);
  EXPECT_GT(shared, 300);
}

TEST(SplitBackwardGraph, LinearLayer) {
  // y = x w: dx = dy w' in the first half, dw = x' dy in the second, to which x and dy are carried.
  JointGraphBuilder builder;
  const partition::NodeIndex w = builder.primal(64), x = builder.primal(32), dy = builder.tangent(32);
  const partition::NodeIndex y = builder.call("mm", {x, w}, 32);
  builder.begin_backward();
  const partition::NodeIndex wt = builder.view("t", w), dx = builder.call("mm", {dy, wt}, 32);
  const partition::NodeIndex xt = builder.view("t", x), dw = builder.call("mm", {xt, dy}, 64);
  partition::Partition partition;
  partition.graph = builder.graph({y}, {dw, dx});
  partition.backward = {.inputs = {w, x, dy}, .ops = {wt, dx, xt, dw}, .outputs = {dw, dx}};
  const partition::SplitBackward split = partition::split_backward_graph(partition, {0, 1});
  EXPECT_EQ(split.input_half.ops, (std::vector{wt, dx}));
  EXPECT_EQ(split.weight_half.ops, (std::vector{xt, dw}));
  EXPECT_EQ(split.carried, (std::vector{x, dy}));
  EXPECT_EQ(split.input_half.outputs, (std::vector{dx, x, dy}));
  EXPECT_EQ(split.weight_half.outputs, (std::vector{dw}));
}

}  // namespace
}  // namespace plumbline::testing
