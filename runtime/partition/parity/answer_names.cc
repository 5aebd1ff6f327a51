#include "runtime/partition/parity/answer_names.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "runtime/partition/joint/effects.h"
#include "runtime/partition/parity/joint_graph_file.h"

namespace plumbline::partition {
namespace {

using Part = JointGraphFile::Part;

/// Generates the names of one graph, made unique as torch.fx does: "getitem", "getitem_1", counting up from the last
/// one.
class FreshNames {
 public:
  explicit FreshNames(std::string base) : base_(std::move(base)) {}

  void take(const std::string& name) {
    if (!name.starts_with(base_)) return;
    used_.insert(name);
    if (name.size() == base_.size()) last_ = 0;
    if (name.size() > base_.size() + 1 && name[base_.size()] == '_')
      std::from_chars(name.data() + base_.size() + 1, name.data() + name.size(), last_);
  }

  std::string next() {
    std::string name = base_;
    while (!used_.insert(name).second) name = base_ + "_" + std::to_string(++last_);
    return name;
  }

 private:
  std::string base_;
  std::unordered_set<std::string> used_;
  int last_ = 0;
};

/// A replayed random call in PyTorch's halves.
struct Replay {
  std::string saving, state, result, replaying;
};

std::vector<NodeIndex> replayed_by_tag(const Partition& partition) {
  const JointGraph& graph = partition.graph;
  std::vector<NodeIndex> calls;
  for (const NodeIndex node : partition.recomputed())
    if (must_recompute(graph.nodes[node]) && draws_random_numbers(graph.nodes[node])) calls.push_back(node);
  return calls;
}

std::unordered_map<NodeIndex, Replay> name_replays(const JointGraph& graph, const std::vector<NodeIndex>& calls) {
  // Names in the forward are numbered over all nodes that it could run.
  FreshNames getitems("getitem"), saving("run_and_save_rng_state"), replaying("run_with_rng_state");
  std::vector<char> of_backward(graph.nodes.size(), 0);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const JointNode& node = graph.nodes[i];
    of_backward[i] = node.kind == JointKind::Tangent || node.kind == JointKind::BackwardSeed;
    for_each_input(node, [&](NodeIndex input) { of_backward[i] |= of_backward[input]; });
    if (!of_backward[i]) getitems.take(node.name);
  }
  std::unordered_map<NodeIndex, Replay> replays;
  for (const NodeIndex call : calls) {
    Replay& replay = replays[call];
    replay.saving = saving.next();
    replay.state = getitems.next();
    replay.result = getitems.next();
    replay.replaying = replaying.next();
  }
  return replays;
}

}  // namespace

AnswerNames answer_names(const Partition& partition) {
  const JointGraph& graph = partition.graph;
  const std::vector<NodeIndex> calls = replayed_by_tag(partition);
  const std::unordered_map<NodeIndex, Replay> replays = name_replays(graph, calls);
  const auto replay_of = [&](NodeIndex node) {
    const auto found = replays.find(node);
    return found == replays.end() ? nullptr : &found->second;
  };
  const auto name = [&](NodeIndex node) { return graph.nodes[node].name; };

  AnswerNames names;
  for (const NodeIndex node : partition.forward.inputs) names.forward.in.push_back(name(node));
  for (const NodeIndex node : partition.forward.ops) {
    if (const Replay* replay = replay_of(node)) {
      for (const std::string& each : {replay->saving, replay->state, replay->result}) names.forward.ops.push_back(each);
    } else {
      names.forward.ops.push_back(name(node));
    }
  }
  for (const NodeIndex node : partition.backward.ops) {
    const Replay* replay = replay_of(node);
    names.backward.ops.push_back(replay ? replay->replaying : name(node));
  }
  const auto output = [&](NodeIndex node, std::string Replay::* result) -> std::optional<std::string> {
    if (node == kNoNode) return std::nullopt;
    const Replay* replay = replay_of(node);
    return replay ? replay->*result : name(node);
  };
  for (const NodeIndex node : partition.forward.outputs) names.forward.out.push_back(output(node, &Replay::result));
  for (const NodeIndex node : partition.backward.outputs)
    names.backward.out.push_back(output(node, &Replay::replaying));
  for (const NodeIndex node : partition.backward.inputs) names.backward.in.push_back(name(node));

  // The states are passed before the symbols, which the forward returns last, and before the tangents.
  size_t state = 0;
  const size_t before_symbols = names.forward.out.size() - partition.saved_symbols.size();
  const auto tangent = std::ranges::find_if(
      partition.backward.inputs, [&](NodeIndex node) { return graph.nodes[node].kind == JointKind::Tangent; });
  const auto before_tangents = static_cast<size_t>(tangent - partition.backward.inputs.begin());
  for (const NodeIndex call : calls) {
    const auto at = static_cast<std::ptrdiff_t>(state);
    names.forward.out.insert(names.forward.out.begin() + static_cast<std::ptrdiff_t>(before_symbols) + at,
                             replays.at(call).state);
    names.backward.in.insert(names.backward.in.begin() + static_cast<std::ptrdiff_t>(before_tangents) + at,
                             "rng_state_output_" + std::to_string(state));
    ++state;
  }
  return names;
}

nlohmann::json answer_json(const Partition& partition) {
  using Json = nlohmann::json;
  const auto saved = [&](const std::vector<NodeIndex>& nodes) {
    Json names = Json::array();
    for (const NodeIndex node : nodes) names.push_back(partition.graph.nodes[node].name);
    return names;
  };
  const auto part = [&](const JointGraphFile::Part& names) {
    Json out = Json::array();
    for (const auto& name : names.out) out.push_back(name ? Json(*name) : Json(nullptr));
    return Json{{"in", names.in}, {"ops", names.ops}, {"out", std::move(out)}};
  };
  const AnswerNames names = answer_names(partition);
  return {{"saved", saved(partition.saved)},
          {"saved_sym", saved(partition.saved_symbols)},
          {"fw", part(names.forward)},
          {"bw", part(names.backward)}};
}

}  // namespace plumbline::partition
