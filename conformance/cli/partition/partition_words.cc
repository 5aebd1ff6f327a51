#include "conformance/cli/partition/partition_words.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "runtime/error.h"
#include "runtime/partition/cut/classify.h"
#include "runtime/partition/joint/clean.h"
#include "runtime/partition/parity/partition_mode.h"

namespace plumbline::cli {
namespace {

using enum partition::CheckpointPolicy;

const char* option_of(partition::CheckpointPolicy word) { return word == MustSave ? "--must-save" : "--recompute"; }

[[noreturn]] void refuse(partition::CheckpointPolicy word, const std::string& why) {
  throw InputError("partition: " + std::string(option_of(word)) + ": " + why);
}

/// By node: only the backward can compute it.
std::vector<char> nodes_of_backward(const partition::JointGraph& graph, const partition::Policy& policy) {
  std::vector<char> backward(graph.nodes.size(), 0);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const partition::JointNode& node = graph.nodes[i];
    backward[i] = node.kind == partition::JointKind::Tangent || node.kind == partition::JointKind::BackwardSeed ||
                  policy.halves.only_in_backward(node);
    partition::for_each_input(node, [&](partition::NodeIndex input) { backward[i] |= backward[input]; });
  }
  return backward;
}

/// By node: its node after the clean-up that precedes partitioning; kNoNode if it was removed.
std::vector<partition::NodeIndex> after_clean_up(const partition::JointGraph& graph, const partition::Policy& policy,
                                                 const partition::PartitionOptions& options) {
  std::vector<partition::NodeIndex> becomes(graph.nodes.size());
  std::iota(becomes.begin(), becomes.end(), 0);
  if (options.mode == partition::PartitionMode::Default) return becomes;  // takes the graph as it is
  partition::Cleaned live = partition::remove_dead_nodes(graph);
  becomes = std::move(live.moved_to);
  if (!policy.cse) return becomes;
  const partition::Cleaned merged = partition::merge_equal_nodes(std::move(live.graph), policy);
  for (partition::NodeIndex& node : becomes)
    if (node != partition::kNoNode) node = merged.moved_to[node];
  return becomes;
}

}  // namespace

PartitionWords tag_nodes(partition::JointGraph& graph, const PartitionWords& words, const partition::Policy& policy,
                         const partition::PartitionOptions& options) {
  if (words.must_save.empty() && words.recompute.empty()) return words;
  const std::vector<char> backward = nodes_of_backward(graph, policy);
  const std::vector<partition::NodeIndex> becomes = after_clean_up(graph, policy, options);
  std::map<partition::NodeIndex, std::pair<partition::CheckpointPolicy, std::string>>
      tagged;  // by node after the clean-up: the tag, and the node that the user named
  const auto tag = [&](partition::CheckpointPolicy word, const std::string& name) {
    const auto node = std::ranges::find(graph.nodes, name, &partition::JointNode::name);
    if (node == graph.nodes.end()) refuse(word, "the graph has no node '" + name + "'");
    const partition::NodeIndex at = static_cast<partition::NodeIndex>(node - graph.nodes.begin());
    if (word == MustRecompute && (node->is_input() || node->kind == partition::JointKind::GetAttr))
      refuse(word,
             "'" + name +
                 "' is an input or a constant, which is never computed; expected a node that the forward computes");
    if (backward[at]) refuse(word, "'" + name + "' belongs to the backward; expected a node that the forward computes");
    if (becomes[at] == partition::kNoNode)
      refuse(word, "'" + name + "' has no users; it is removed before the graph is partitioned");
    const auto [other, first] = tagged.try_emplace(becomes[at], word, name);
    const auto& [other_word, other_name] = other->second;
    if (first || other_word == word) return;
    const std::string who = other_name == name
                                ? "'" + name + "' is"
                                : "'" + name + "' is merged with the equal call '" + other_name + "', which is";
    refuse(word, who + " named by " + option_of(other_word) + " as well; only one of the two can apply");
  };
  for (const std::string& name : words.must_save) tag(MustSave, name);
  for (const std::string& name : words.recompute) tag(MustRecompute, name);

  PartitionWords all;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto found = tagged.find(becomes[i]);
    if (found == tagged.end()) continue;
    const partition::CheckpointPolicy word = found->second.first;
    graph.nodes[i].recompute = word;
    (word == MustSave ? all.must_save : all.recompute).push_back(graph.nodes[i].name);
  }
  return all;
}

void expect_kept(const PartitionWords& words, const partition::Partition& partition,
                 const partition::PartitionOptions& options) {
  const auto names_one_of = [&](const std::vector<std::string>& names, const std::vector<partition::NodeIndex>& nodes) {
    return std::ranges::find_if(names, [&](const std::string& name) {
      return std::ranges::any_of(nodes,
                                 [&](partition::NodeIndex node) { return partition.graph.nodes[node].name == name; });
    });
  };
  const std::string mode = "the mode " + partition::to_string(options);
  if (const auto name = names_one_of(words.must_save, partition.recomputed()); name != words.must_save.end())
    refuse(MustSave,
           mode + " recomputes '" + *name + "' anyway; expected min-cut, bytes or another mode that respects tags");
  for (const std::vector<partition::NodeIndex>* saved : {&partition.saved, &partition.saved_symbols})
    if (const auto name = names_one_of(words.recompute, *saved); name != words.recompute.end())
      refuse(MustRecompute, mode + " saves '" + *name +
                                "' anyway; expected a mode and a policy that respect tags, such as min-cut by "
                                "torch-2.15");
}

}  // namespace plumbline::cli
