#include "runtime/split/cut/analysis.h"

#include <algorithm>
#include <unordered_map>

#include "runtime/error.h"
#include "runtime/graph/gradient_reach.h"

namespace plumbline::split {

SplitAnalysis::SplitAnalysis(const graph::Graph& graph, std::vector<int> stage_of_node, const SplitOptions& options)
    : graph_(graph),
      stage_of_node_(std::move(stage_of_node)),
      stages_(stage_of_node_.empty() ? 1 : stage_of_node_.back() + 1),
      producer_(graph.values.size(), kAttribute),
      maker_(graph.values.size(), -1),
      used_by_(graph.values.size()),
      changed_in_place_(stages_),
      draws_(stages_, 0) {
  for (const graph::GraphInput& input : graph.inputs) producer_[input.value] = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const int stage = stage_of_node_[i];
    graph::for_each_definition(graph.nodes[i], [&](graph::ValueId v) {
      producer_[v] = stage;
      maker_[v] = static_cast<int32_t>(i);
    });
    graph::for_each_use(graph.nodes[i], [&](graph::ValueId v) { add_use(v, stage); });
    draws_[stage] = draws_[stage] || graph::draws_random_numbers(graph.nodes[i]);
  }
  add_output_uses(options);
  follow_writes();
  find_gradients(options);
}

/// The last stage uses the model's outputs, except those that stay where they are made.
void SplitAnalysis::add_output_uses(const SplitOptions& options) {
  std::vector<char> stays(graph_.outputs.size(), 0);
  for (int i : options.local_losses) {
    const std::string place = "split: local loss " + std::to_string(i);
    if (i < 0 || i >= static_cast<int>(graph_.outputs.size()))
      throw InputError(place + ": the model has " + std::to_string(graph_.outputs.size()) + " outputs");
    if (stays[i] != 0 ||
        (options.loss_outputs && std::ranges::find(*options.loss_outputs, i) != options.loss_outputs->end()))
      throw InputError(place + " is named twice; each output is a loss once, of its stage or of the last one");
    stays[i] = 1;
    const graph::ValueId v = graph_.outputs[i];
    if (v == graph::kNoValue) continue;
    const graph::Value& value = graph_.values[v];
    if (producer_[v] == kAttribute || !value.sizes.empty() || !at::isFloatingType(value.dtype))
      throw InputError(place + " is " + graph::describe(value.dtype, value.sizes) +
                       "; expected a floating-point scalar that a stage computes");
  }
  for (size_t i = 0; i < graph_.outputs.size(); ++i)
    if (graph_.outputs[i] != graph::kNoValue && !stays[i]) add_use(graph_.outputs[i], stages_ - 1);
}

/// Stages come in ascending order, since nodes do.
void SplitAnalysis::add_use(graph::ValueId v, int stage) {
  if (used_by_[v].empty() || used_by_[v].back() != stage) used_by_[v].push_back(stage);
}

/// Values that share memory have the same key; a value of unknown memory has its own key.
int32_t SplitAnalysis::memory_of(graph::ValueId v) const {
  return graph_.values[v].storage >= 0 ? graph_.values[v].storage : -2 - v;
}

void SplitAnalysis::follow_writes() {
  std::unordered_map<int32_t, Memory> written;
  for (size_t i = 0; i < graph_.nodes.size(); ++i)
    graph::for_each_mutation(graph_.nodes[i],
                             [&](graph::ValueId v) { written[memory_of(v)].writes.push_back({i, v}); });
  if (written.empty()) return;
  for (const graph::Attribute& attribute : graph_.attributes)
    if (attribute.value != graph::kNoValue)
      if (const auto it = written.find(memory_of(attribute.value)); it != written.end() && !it->second.owner)
        it->second.owner = &attribute;
  for (graph::ValueId v = 0; v < static_cast<graph::ValueId>(graph_.values.size()); ++v)
    if (const auto it = written.find(memory_of(v)); it != written.end()) it->second.values.push_back(v);
  for (const auto& [key, memory] : written) {
    if (memory.owner)
      check_attribute(memory);
    else
      check_values(memory);
  }
}

/// Every user of a buffer must see a stage's write to it. Later stages receive the written value; an earlier stage
/// would have to wait for the previous micro-batch. All uses of the memory count, including those through views.
void SplitAnalysis::check_attribute(const Memory& memory) {
  const Write& write = memory.writes.front();
  const int writer = stage_of_node_[write.node];
  const auto refuse = [&](int stage, int other) {
    throw InputError("split: " + c10::toString(graph_.nodes[write.node].op->operator_name()) + " in stage " +
                     std::to_string(stage) + " writes the memory of '" + memory.owner->name + "', which stage " +
                     std::to_string(other) + " uses as well; copies would diverge, so keep both in one stage");
  };
  for (graph::ValueId v : memory.values) written_buffers_.emplace(v, static_cast<int32_t>(memory.writes.back().node));
  for (const Write& other : memory.writes)
    if (stage_of_node_[other.node] != writer) refuse(writer, stage_of_node_[other.node]);
  for (graph::ValueId v : memory.values)
    for (int user : used_by_[v]) {
      // A later stage's view is a view of the copy that the stage received.
      const bool not_before = producer_[v] == kAttribute ? used_by_[v].front() == writer : producer_[v] >= writer;
      const bool sent_on = user > writer && not_before && memory.owner->kind == graph::AttributeKind::Buffer;
      if (user != writer && !sent_on) refuse(writer, user);
    }
}

bool SplitAnalysis::reads_written_buffer(int32_t node, graph::ValueId v) const {
  const auto it = written_buffers_.find(v);
  if (it == written_buffers_.end()) return false;
  const int32_t last_write = it->second;
  // Values derived from the copy need no copy.
  return node > last_write && maker_[v] <= last_write && stage_of_node_[node] == stage_of_node_[last_write];
}

/// A stage that writes a received value writes its own copy. That is correct if it received that memory once, and no
/// later stage goes back to the earlier stage's value.
void SplitAnalysis::check_values(const Memory& memory) {
  for (const Write& write : memory.writes) {
    const int stage = stage_of_node_[write.node];
    std::vector<graph::ValueId>& copied = changed_in_place_[stage];
    graph::ValueId arrives = graph::kNoValue;
    for (graph::ValueId v : memory.values) {
      const bool is_input = producer_[v] == 0 && maker_[v] < 0;
      if (producer_[v] > stage || (producer_[v] == stage && !is_input) || used_by_[v].empty()) continue;
      if (used_by_[v].back() > stage) refuse_change(write, v, used_by_[v].back());
      if (!std::binary_search(used_by_[v].begin(), used_by_[v].end(), stage)) continue;
      if (arrives != graph::kNoValue) refuse_change(write, v, stage);
      arrives = v;
    }
    if (arrives == graph::kNoValue) continue;
    if (std::find(copied.begin(), copied.end(), arrives) == copied.end()) copied.push_back(arrives);
    if (!required_gradient_before(arrives, memory, stage)) plain_at_border_.insert(arrives);
  }
}

/// Whether a result or a write of `node` requires a gradient.
bool SplitAnalysis::records_gradient(const graph::Node& node) const {
  bool from_gradient = false;
  graph::for_each_use(node, [&](graph::ValueId u) { from_gradient = from_gradient || graph_.values[u].requires_grad; });
  return node.grad_enabled && from_gradient && node.op->operator_name().name != "aten::detach";
}

/// Whether `v` required a gradient before `stage` wrote into its memory: values record the final state.
bool SplitAnalysis::required_gradient_before(graph::ValueId v, const Memory& memory, int stage) const {
  if (!graph_.values[v].requires_grad || maker_[v] < 0) return graph_.values[v].requires_grad;
  if (records_gradient(graph_.nodes[maker_[v]])) return true;
  return std::any_of(memory.writes.begin(), memory.writes.end(), [&](const Write& write) {
    return stage_of_node_[write.node] < stage && records_gradient(graph_.nodes[write.node]);
  });
}

void SplitAnalysis::refuse_change(const Write& write, graph::ValueId seen, int stage) const {
  const graph::Value& value = graph_.values[seen];
  throw InputError("split: " + c10::toString(graph_.nodes[write.node].op->operator_name()) + " in stage " +
                   std::to_string(stage_of_node_[write.node]) + " changes in place the memory of %" +
                   std::to_string(seen) + " " + graph::describe(value.dtype, value.sizes) + ", which stage " +
                   std::to_string(producer_[seen]) + " made and stage " + std::to_string(stage) +
                   " reads by another path; use the out-of-place form, clone() the value first, or move the border");
}

void SplitAnalysis::find_gradients(const SplitOptions& options) {
  std::vector<graph::ValueId> roots;
  if (!options.loss_outputs) roots = graph_.outputs;
  for (int i : options.local_losses) roots.push_back(graph_.outputs[i]);
  for (int i : options.loss_outputs.value_or(std::vector<int>{})) {
    if (i < 0 || i >= static_cast<int>(graph_.outputs.size()))
      throw InputError("split: the loss needs output " + std::to_string(i) + " of the model, which has " +
                       std::to_string(graph_.outputs.size()) + " outputs");
    roots.push_back(graph_.outputs[i]);
  }
  has_gradient_ = graph::gradient_reach(graph_, roots);
  for (graph::ValueId v : plain_at_border_) has_gradient_[v] = 0;
}

}  // namespace plumbline::split
