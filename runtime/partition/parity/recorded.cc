#include "runtime/partition/parity/recorded.h"

#include <algorithm>
#include <unordered_map>

#include "runtime/partition/parity/answer_names.h"
#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/parity/partition_mode.h"
#include "runtime/text/join.h"

namespace plumbline::partition {
namespace {

using NameList = std::vector<std::string>;

NameList names(const JointGraph& graph, const std::vector<NodeIndex>& nodes) {
  NameList all;
  for (const NodeIndex node : nodes) all.push_back(node == kNoNode ? "null" : graph.nodes[node].name);
  return all;
}

NameList names(const std::vector<std::optional<std::string>>& outputs) {
  NameList all;
  for (const std::optional<std::string>& output : outputs) all.push_back(output.value_or("null"));
  return all;
}

/// The names of `from` that `without` lacks, counting duplicates.
NameList minus(const NameList& from, const NameList& without) {
  std::unordered_map<std::string_view, int> count;
  for (const std::string& name : without) ++count[name];
  NameList rest;
  for (const std::string& name : from)
    if (--count[name] < 0) rest.push_back(name);
  return rest;
}

}  // namespace

std::string policy_name_of(const JointGraphFile::Variant& variant) {
  const size_t minor = variant.torch.find('.');
  if (minor == std::string::npos) return "torch-2.15";
  return "torch-" + variant.torch.substr(0, variant.torch.find('.', minor + 1));
}

PartitionOptions options_of(const JointGraphFile& file, const JointGraphFile::Run& run) {
  PartitionOptions options = parse_partition_mode(run.mode == "min_cut" ? "min-cut" : run.mode);
  if (run.statics == "params") options.static_inputs = file.variants.at(run.variant).params;
  return options;
}

std::vector<std::string> differences(const JointGraphFile::Run& run, const Partition& partition) {
  std::vector<std::string> found;
  const auto compare = [&](const std::string& what, const NameList& recorded, const NameList& ours) {
    if (recorded == ours) return;
    const NameList lacks = minus(recorded, ours), has = minus(ours, recorded);
    if (lacks.empty() && has.empty()) {
      found.push_back("order of " + what);
      return;
    }
    std::string text = what + ":";
    if (!lacks.empty()) text += " lacks " + join(lacks);
    if (!has.empty()) text += (lacks.empty() ? " has " : "; has ") + join(has);
    found.push_back(text);
  };
  const JointGraph& graph = partition.graph;
  compare("saved", run.saved, names(graph, partition.saved));
  compare("saved_sym", run.saved_symbols, names(graph, partition.saved_symbols));
  const auto compare_parts = [&](const std::string& what, const JointGraphFile::Part& recorded,
                                 const JointGraphFile::Part& ours) {
    compare(what + ".in", recorded.in, ours.in);
    compare(what + ".ops", recorded.ops, ours.ops);
    compare(what + ".out", names(recorded.out), names(ours.out));
  };
  const AnswerNames ours = answer_names(partition);
  compare_parts("fw", run.forward, ours.forward);
  compare_parts("bw", run.backward, ours.backward);
  return found;
}

}  // namespace plumbline::partition
