#include "runtime/partition/cut/halves.h"

#include <algorithm>
#include <utility>

namespace plumbline::partition {

Halves halves_of(const CutInput& input) {
  const auto n = static_cast<NodeIndex>(input.graph.nodes.size());
  MustRun must = calls_that_must_run(input.graph, input.edges);
  Halves halves{input.classes.required_forward, std::vector<char>(n, 0), std::move(must.in_backward)};
  // classes.tangents_closure does not serve here: under the rules of PyTorch 2.3 it includes forward values that are
  // returned as gradients.
  for (NodeIndex i = 0; i < n; ++i) {
    const JointNode& node = input.graph.nodes[i];
    const auto inputs = input.edges.inputs(i);
    halves.only_backward[i] =
        node.kind == JointKind::Tangent || input.policy.halves.only_in_backward(node) ||
        std::any_of(inputs.begin(), inputs.end(), [&](NodeIndex needed) { return halves.only_backward[needed]; });
  }
  std::vector<char> used = halves.stays_in_backward;  // by the backward
  for (const NodeIndex output : input.graph.backward_outputs())
    if (output != kNoNode) used[output] = 1;
  for (NodeIndex i = n - 1; i >= 0; --i) {
    const bool bound = used[i] && must_be_in_forward(input.graph.nodes[i]);
    if ((must.in_forward[i] || bound) && !halves.only_backward[i]) halves.in_forward[i] = 1;
    for (const NodeIndex needed : input.edges.inputs(i)) {
      halves.in_forward[needed] |= halves.in_forward[i];
      used[needed] |= used[i];
    }
  }
  for (NodeIndex i = 0; i < n; ++i) {
    if (halves.in_forward[i]) halves.stays_in_backward[i] = 0;
    if (halves.in_forward[i] || halves.only_backward[i]) continue;
    const auto inputs = input.edges.inputs(i);
    halves.only_backward[i] =
        halves.stays_in_backward[i] ||
        std::any_of(inputs.begin(), inputs.end(), [&](NodeIndex needed) { return halves.only_backward[needed]; });
  }
  return halves;
}

bool runs_once(const JointNode& node) {
  return node.recompute == CheckpointPolicy::MustSave || must_be_in_forward(node) ||
         (has_effects(node) && !is_collective_wait(node));
}

}  // namespace plumbline::partition
