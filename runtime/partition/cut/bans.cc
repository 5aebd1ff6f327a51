#include "runtime/partition/cut/bans.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace plumbline::partition {
namespace {

class Bans {
 public:
  Bans(const CutInput& input, const CutRules& rules, const std::vector<char>& dont_ban)
      : graph_(input.graph),
        edges_(input.edges),
        policy_(input.policy),
        ops_(input.ops),
        classes_(input.classes),
        rules_(rules),
        dont_ban_(dont_ban),
        ban_(input.graph.nodes.size(), Ban::None) {}

  std::vector<Ban> run() {
    too_far_applies_ = rules_.ban_too_far && policy_.distance.applies(ops_);
    if (rules_.ban_materialized_backward) find_materialized_backward();
    for (NodeIndex i = 0; i < count(); ++i) {
      if (classes_.tangents_closure[i] && classes_.required_backward[i]) continue;
      if (ops_.facts[i].primal) ban(i, Ban::Primal);
      if (ops_.facts[i].forward_seed) ban(i, Ban::ForwardSeed);
      if (!classes_.required_forward[i]) continue;
      if (const Ban reason = reason_of(i); reason != Ban::None) ban(i, reason);
    }
    if (rules_.ban_used_far_apart) ban_used_far_apart();
    if (rules_.ban_long_fusible_chains) ban_long_fusible_chains();
    return std::move(ban_);
  }

 private:
  NodeIndex count() const { return static_cast<NodeIndex>(ops_.facts.size()); }
  bool in_forward(NodeIndex i) const { return classes_.required_forward[i]; }

  /// Bans the node unless an exemption applies.
  void ban(NodeIndex i, Ban reason) {
    const NodeFacts& node = ops_.facts[i];
    if (ban_[i] != Ban::None) return;
    if (std::ranges::any_of(policy_.never_banned, [&](NodeRule holds) { return holds(node); })) return;
    if (!dont_ban_.empty() && dont_ban_[i] && !policy_.never_given_up(node)) return;
    if (policy_.forced_to_recompute(node)) return;
    ban_[i] = reason;
  }

  Ban reason_of(NodeIndex i) const {
    const NodeFacts& node = ops_.facts[i];
    if (!node.call) return Ban::None;
    const bool outside_allowlist = policy_.outside_allowlist(node);
    if (node.getitem && outside_allowlist) return Ban::None;
    if (node.must_save) return Ban::MustSave;
    if (node.must_recompute || policy_.never_saved(node) || outside_allowlist) return Ban::None;
    if (rules_.ban_not_in_allowlist) {
      if (!ops_.recomputable[i]) return Ban::NotInAllowlist;
    } else {
      if (ops_.random[i]) return Ban::Random;
      if (ops_.compute_intensive[i]) return Ban::ComputeIntensive;
    }
    if (node.getitem || node.lift) return Ban::None;
    if (rules_.ban_materialized_backward && materialized_backward_[i]) return Ban::MaterializedBackward;
    if (too_far_applies_ && policy_.distance.bans(classes_.distance_to_backward[i])) return Ban::TooFar;
    if (rules_.ban_reductions && reduces(graph_, edges_, i, ops_, policy_)) return Ban::Reduction;
    return Ban::None;
  }

  /// Whether a node, or a view of it, has a user outside the forward with which it cannot be fused: it is then written
  /// to memory in the backward, so recomputing it is not free.
  void find_materialized_backward() {
    materialized_backward_.assign(count(), 0);
    for (NodeIndex i = count(); i-- > 0;) {
      bool materialized = edges_.is_output[i];
      for (const NodeIndex user : edges_.users(i)) {
        if (materialized) break;
        materialized =
            (!in_forward(user) && !fusible(ops_, i, user)) ||
            (materialized_backward_[user] && policy_.passes_materialization(ops_.facts[user], in_forward(user)));
      }
      materialized_backward_[i] = materialized;
    }
  }

  /// If a value has near and far uses with an unfusible node between them, bans the far uses from recomputation:
  /// recomputing them would need the value beyond that node.
  void ban_used_far_apart() {
    // By node: the order of the first node that a chain of fusible uses from here reaches but cannot be fused with.
    std::vector<int32_t> first_unfusible(count(), kFarFromBackward);
    for (NodeIndex i = count(); i-- > 0;)
      for (const NodeIndex user : edges_.users(i)) {
        if (!in_forward(user)) continue;
        const int32_t met = fusible(ops_, i, user) ? first_unfusible[user] : classes_.forward_order[user];
        first_unfusible[i] = std::min(first_unfusible[i], met);
      }
    for (NodeIndex i = 0; i < count(); ++i) {
      if (!in_forward(i)) continue;
      int32_t border = kFarFromBackward;
      for (const NodeIndex user : edges_.users(i))
        if (in_forward(user)) border = std::min(border, first_unfusible[user]);
      for (const NodeIndex user : edges_.users(i))
        if (in_forward(user) && classes_.forward_order[user] > border && fusible(ops_, i, user))
          ban(user, Ban::UsedFarApart);
    }
  }

  /// Breaks chains of fusible nodes where all paths meet in one node more than 100 after the start.
  void ban_long_fusible_chains() {
    constexpr int32_t kLong = 100;
    std::vector<char> visited(count(), 0);
    // Nodes are in forward order, so their indices give the order. May hold duplicates, which count as separate paths.
    std::priority_queue<NodeIndex, std::vector<NodeIndex>, std::greater<>> open;
    for (NodeIndex start = 0; start < count(); ++start) {
      if (!in_forward(start) || visited[start]) continue;
      open.push(start);
      while (!open.empty()) {
        const NodeIndex i = open.top();
        open.pop();
        if (visited[i]) continue;
        visited[i] = 1;
        if (classes_.forward_order[i] > classes_.forward_order[start] + kLong && open.empty()) {
          ban(i, Ban::LongFusibleChain);
          break;
        }
        for (const NodeIndex user : edges_.users(i))
          if (in_forward(user) && fusible(ops_, i, user) && ban_[user] == Ban::None) open.push(user);
      }
    }
  }

  const JointGraph& graph_;
  const JointEdges& edges_;
  const Policy& policy_;
  const OpClasses& ops_;
  const NodeClasses& classes_;
  const CutRules& rules_;
  const std::vector<char>& dont_ban_;
  bool too_far_applies_ = false;
  std::vector<char> materialized_backward_;
  std::vector<Ban> ban_;
};

}  // namespace

std::string_view describe(Ban ban) {
  switch (ban) {
    case Ban::None:
      return "";
    case Ban::Primal:
      return "it is an input of the forward";
    case Ban::ForwardSeed:
      return "it is a random seed of the forward";
    case Ban::MustSave:
      return "it is tagged MUST_SAVE";
    case Ban::NotInAllowlist:
      return "its operation is not among the recomputable ones";
    case Ban::Random:
      return "it is random";
    case Ban::ComputeIntensive:
      return "it is compute-intensive";
    case Ban::MaterializedBackward:
      return "the backward would write it to memory";
    case Ban::TooFar:
      return "it is too far from the backward";
    case Ban::Reduction:
      return "it is a reduction, cheaper to keep";
    case Ban::UsedFarApart:
      return "what it uses is used far apart";
    case Ban::LongFusibleChain:
      return "it breaks a long chain of fusible operations";
  }
  return "";
}

std::vector<Ban> banned_from_recomputation(const CutInput& input, const CutRules& rules,
                                           const std::vector<char>& dont_ban) {
  return Bans(input, rules, dont_ban).run();
}

}  // namespace plumbline::partition
