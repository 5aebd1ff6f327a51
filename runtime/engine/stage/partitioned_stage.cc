#include "runtime/engine/stage/partitioned_stage.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "runtime/engine/plan/agreement.h"
#include "runtime/engine/stage/stage_trace.h"
#include "runtime/error.h"
#include "runtime/graph/error_text.h"
#include "runtime/partition/parity/partition_mode.h"
#include "runtime/partition/parity/policies/policy_file.h"

namespace plumbline::engine {
namespace {

bool requires_gradient(const graph::Attribute& attribute) {
  return attribute.tensor.defined() && attribute.tensor.requires_grad();
}

bool has_backward(const partition::JointGraph& graph) {
  const std::span<const partition::NodeIndex> gradients = graph.backward_outputs();
  return std::any_of(gradients.begin(), gradients.end(),
                     [](partition::NodeIndex node) { return node != partition::kNoNode; });
}

std::string describe(const partition::Partition& partition) {
  int64_t bytes = 0;
  for (const partition::NodeIndex saved : partition.saved) bytes += partition.graph.nodes[saved].out.bytes;
  char text[160];
  std::snprintf(text, sizeof text, "%016llx (%zu values of %lld bytes saved, %zu calls run twice)",
                static_cast<unsigned long long>(partition::certificate(partition)), partition.saved.size(),
                static_cast<long long>(bytes), partition.recomputed().size());
  return text;
}

}  // namespace

PartitionedStage::PartitionedStage(int stage, std::vector<const graph::Graph*> graphs,
                                   std::vector<std::vector<char>> has_gradient, RematOptions options)
    : stage_(stage),
      graphs_(std::move(graphs)),
      has_gradient_(std::move(has_gradient)),
      options_(std::move(options)),
      partitions_(graphs_.size()) {
  for (size_t variant = 0; variant < graphs_.size(); ++variant) {
    const Made& made = partitions_[variant].emplace_back(make(static_cast<int>(variant), {}));
    choices_.push_back(made.partition ? describe(made.partition->partition()) : "nothing to differentiate");
  }
}

PartitionedStage::~PartitionedStage() = default;

bool PartitionedStage::Made::is_for(const graph::Graph& graph, std::span<const at::Tensor> inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool contiguous = !inputs[i].defined() || inputs[i].is_contiguous();
    if (contiguous ? !strides[i].empty() : inputs[i].strides() != strides[i]) return false;
  }
  for (size_t a = 0; a < requires_grad.size(); ++a)
    if (requires_grad[a] != static_cast<char>(requires_gradient(graph.attributes[a]))) return false;
  return true;
}

PartitionedStage::Made PartitionedStage::make(int variant, std::span<const at::Tensor> inputs) const {
  const graph::Graph& graph = *graphs_[variant];
  Made made;
  made.strides.resize(graph.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].defined() && !inputs[i].is_contiguous()) made.strides[i] = inputs[i].strides().vec();
  for (const graph::Attribute& attribute : graph.attributes) made.requires_grad.push_back(requires_gradient(attribute));
  try {
    partition::JointTrace trace = trace_stage(graph, has_gradient_[variant], inputs);
    if (!has_backward(trace.graph)) return made;
    partition::PartitionOptions options = partition::parse_partition_mode(options_.mode);
    options.static_inputs = trace.static_inputs;
    partition::Partition partition =
        plumbline::partition::partition(trace.graph, partition::load_policy(options_.policy), options);
    made.partition = std::make_unique<partition::PartitionedGraph>(graph, std::move(trace), std::move(partition));
    return made;
  } catch (const std::exception& error) {
    throw InputError("stage " + std::to_string(stage_) + " has no joint graph: " + graph::error_line(error) +
                     "; run it without --remat");
  }
}

partition::PartitionedGraph* PartitionedStage::of(int variant, std::span<const at::Tensor> inputs) {
  std::vector<Made>& known = partitions_[variant];
  auto made = std::find_if(known.begin(), known.end(),
                           [&](const Made& each) { return each.is_for(*graphs_[variant], inputs); });
  if (made == known.end()) {
    Made fresh = make(variant, inputs);
    if (known.size() == kMaxPartitions) known.pop_back();
    made = known.insert(known.end(), std::move(fresh));
  }
  std::rotate(known.begin(), made, made + 1);  // the last used is first
  return known.front().partition.get();
}

std::vector<std::string> no_choices(size_t variants) { return std::vector<std::string>(variants, "none"); }

void check_same_choices(const std::map<int, std::vector<std::string>>& choices, transport::Transport& transport,
                        const transport::Deadline& deadline) {
  Beliefs mine;  // stage, variant, choice
  for (const auto& [stage, lines] : choices)
    for (size_t variant = 0; variant < lines.size(); ++variant)
      mine.insert(mine.end(), {std::to_string(stage), std::to_string(variant), lines[variant]});
  require_agreement(mine, transport, deadline, [](std::span<const Beliefs> of_rank) -> std::string {
    std::map<std::pair<std::string, std::string>, std::pair<std::string, size_t>> first;  // the choice, and its rank
    for (size_t rank = 0; rank < of_rank.size(); ++rank) {
      const Beliefs& theirs = of_rank[rank];
      for (size_t i = 0; i < theirs.size(); i += 3) {
        const std::string &stage = theirs[i], &choice = theirs[i + 2];
        const auto& [known, whose] = first.try_emplace({stage, theirs[i + 1]}, choice, rank).first->second;
        if (known != choice)
          return "stage " + stage + " is partitioned in two ways: " + known + " on rank " + std::to_string(whose) +
                 ", " + choice + " on rank " + std::to_string(rank) +
                 "; every rank must hold the same model and the same LibTorch";
      }
    }
    return {};
  });
}

}  // namespace plumbline::engine
