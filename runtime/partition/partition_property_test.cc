// Properties of every partition: random draws and calls with effects happen as they did in the model.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "runtime/partition/parity/partition_mode.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/partition.h"
#include "runtime/partition/testing/names_of.h"
#include "runtime/partition/testing/random_joint_graph.h"

namespace plumbline::partition {
namespace {

using Names = std::vector<std::string>;

bool is_draw(const JointNode& node) { return node.op == "aten::native_dropout"; }
bool is_effect(const JointNode& node) { return node.op == "own::effect"; }

/// The draws and effects of the model in each half, in order.
struct Events {
  Names forward, backward;
};

Events events_of_model(const JointGraph& graph) {
  Events events;
  size_t last_of_forward = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].kind == JointKind::Call && graph.nodes[i].mark == JointMark::IsForward) last_of_forward = i;
  if (last_of_forward > 0)
    for (const NodeIndex output : graph.forward_outputs())
      last_of_forward = std::max(last_of_forward, static_cast<size_t>(output));
  std::vector<char> of_backward(graph.nodes.size(), 0);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const JointNode& node = graph.nodes[i];
    const bool event = is_draw(node) || is_effect(node);
    const bool marked = node.mark == JointMark::IsBackward || node.mark == JointMark::MustBeInBackward ||
                        (node.mark == JointMark::None && last_of_forward > 0 && i > last_of_forward);
    of_backward[i] = node.kind == JointKind::Tangent || (event && marked);
    for_each_input(node, [&](NodeIndex input) { of_backward[i] |= of_backward[input]; });
    if (event) (of_backward[i] ? events.backward : events.forward).push_back(node.name);
  }
  return events;
}

/// Recomputed draws replay the first draw's state, so they do not count as events.
Names events_in(const Partition& made, const Subgraph& part) {
  std::set<NodeIndex> replayed;
  if (&part == &made.backward) replayed.insert(made.replayed.begin(), made.replayed.end());
  Names events;
  for (const NodeIndex op : part.ops) {
    const JointNode& node = made.graph.nodes[op];
    if ((is_draw(node) && !replayed.contains(op)) || is_effect(node)) events.push_back(node.name);
  }
  return events;
}

TEST(PartitionProperty, DrawsAndEffectsHappenAsInTheModel) {
  const testing::RandomJointOptions of{
      .seeded = 0.25, .unclaimed = 0.3, .effects = 0.12, .scalars = 0.08, .unmarked = 0.15};
  for (const char* name : {"torch-2.15", "torch-2.11", "seed"}) {
    const Policy policy = load_policy(name);
    for (unsigned seed = 0; seed < 1000; ++seed) {
      std::mt19937 random(seed);
      const JointGraph graph = testing::random_joint_graph(random, of);
      const Events expected = events_of_model(graph);
      for (const char* mode : {"default", "bytes", "budget=0:peak", "budget=1:peak"}) {
        const Partition made = partition(graph, policy, parse_partition_mode(mode));
        ASSERT_EQ(events_in(made, made.forward), expected.forward) << name << " " << mode << ", seed " << seed << "\n"
                                                                   << testing::to_text(graph);
        ASSERT_EQ(events_in(made, made.backward), expected.backward) << name << " " << mode << ", seed " << seed << "\n"
                                                                     << testing::to_text(graph);
      }
    }
  }
}

}  // namespace
}  // namespace plumbline::partition
