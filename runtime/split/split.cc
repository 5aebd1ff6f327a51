#include "runtime/split/split.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "runtime/error.h"
#include "runtime/join.h"

namespace plumbline {
namespace {

/// Node indices before which a split point asks for a new stage.
std::vector<char> cuts(const Graph& graph, const std::vector<SplitPoint>& points) {
  std::vector<char> cut(graph.nodes.size() + 1, 0);
  for (const SplitPoint& point : points) {
    bool entered = false;
    for (const ModuleCall& module : graph.module_calls) {
      if (module.name != point.module) continue;
      entered = true;
      cut[point.where == SplitPoint::Where::Beginning ? module.begin : module.end] = 1;
    }
    if (entered) continue;
    std::set<std::string> names;
    for (const ModuleCall& module : graph.module_calls) names.insert(module.name);
    throw InputError(
        "split: no module named '" + point.module + "' was entered; " +
        (names.empty() ? "forward enters none through plumbline::call()" : "entered were: " + join(names)));
  }
  return cut;
}

/// The stage of each node; markers get the stage before them.
std::vector<int> stage_of_nodes(const Graph& graph, const std::vector<SplitPoint>& points) {
  const std::vector<char> cut = cuts(graph, points);
  std::vector<int> stage_of(graph.nodes.size(), 0);
  int stage = 0;
  bool pending = false, any_call = false;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    pending = pending || cut[i] || graph.nodes[i].is_split();
    if (!graph.nodes[i].is_split()) {
      if (pending && any_call) ++stage;
      pending = false;
      any_call = true;
    }
    stage_of[i] = stage;
  }
  return stage_of;
}

/// Everything about the whole graph that the construction of stages asks for, found in linear passes.
class Analysis {
 public:
  Analysis(const Graph& graph, const SplitOptions& options)
      : graph_(graph),
        stage_of_node_(stage_of_nodes(graph, options.points)),
        producer_(graph.values.size(), kAttribute),
        used_by_(graph.values.size()) {
    stages_ = graph.nodes.empty() ? 1 : stage_of_node_.back() + 1;
    for (const GraphInput& input : graph.inputs) producer_[input.value] = 0;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      for_each_definition(graph.nodes[i], [&](ValueId v) { producer_[v] = stage_of_node_[i]; });
      for_each_use(graph.nodes[i], [&](ValueId v) { add_use(v, stage_of_node_[i]); });
    }
    for (ValueId v : graph.outputs)
      if (v != kNoValue) add_use(v, stages_ - 1);
    refuse_mutations_across_stages();
    find_gradients(options.loss_outputs);
  }

  static constexpr int kAttribute = -1;

  int stages() const { return stages_; }
  int stage_of_node(size_t node) const { return stage_of_node_[node]; }
  /// kAttribute for parameters, buffers and constants.
  int producer(ValueId v) const { return producer_[v]; }
  /// Ascending, without repetition.
  const std::vector<int>& used_by(ValueId v) const { return used_by_[v]; }
  bool has_gradient(ValueId v) const { return has_gradient_[v]; }

 private:
  /// Stages come in ascending order, since nodes do.
  void add_use(ValueId v, int stage) {
    if (used_by_[v].empty() || used_by_[v].back() != stage) used_by_[v].push_back(stage);
  }

  /// Values in the same memory have the same key; a value of unknown memory has one to itself.
  int32_t memory(ValueId v) const { return graph_.values[v].storage >= 0 ? graph_.values[v].storage : -2 - v; }

  void refuse_mutations_across_stages() {
    // The earliest stage that made a value in each memory; attributes are apart, they do not travel. All uses of an
    // attribute's memory count: a view of it that crosses a border would be written while it is on its way.
    std::unordered_map<int32_t, ValueId> first_in_memory;
    std::unordered_map<int32_t, const Attribute*> attribute_in_memory;
    std::unordered_map<int32_t, std::set<int>> users_of_memory;
    for (const Attribute& attribute : graph_.attributes)
      if (attribute.value != kNoValue) attribute_in_memory.emplace(memory(attribute.value), &attribute);
    for (ValueId v = 0; v < static_cast<ValueId>(graph_.values.size()); ++v) {
      users_of_memory[memory(v)].insert(used_by_[v].begin(), used_by_[v].end());
      if (producer_[v] == kAttribute) continue;
      const auto [it, inserted] = first_in_memory.emplace(memory(v), v);
      if (!inserted && producer_[v] < producer_[it->second]) it->second = v;
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const int stage = stage_of_node_[i];
      for_each_mutation(graph_.nodes[i], [&](ValueId v) {
        const std::string op = c10::toString(graph_.nodes[i].op->operator_name());
        if (const auto owner = attribute_in_memory.find(memory(v)); owner != attribute_in_memory.end()) {
          for (int user : users_of_memory[memory(v)])
            if (user != stage)
              throw InputError("split: " + op + " in stage " + std::to_string(stage) + " writes the memory of '" +
                               owner->second->name + "', which stage " + std::to_string(user) +
                               " uses as well; copies would part, so keep both in one stage");
          return;
        }
        const auto it = first_in_memory.find(memory(v));
        if (it == first_in_memory.end() || producer_[it->second] >= stage) return;
        throw InputError("split: " + op + " in stage " + std::to_string(stage) + " changes in place the memory of %" +
                         std::to_string(it->second) + " " +
                         describe(graph_.values[it->second].dtype, graph_.values[it->second].sizes) + ", which stage " +
                         std::to_string(producer_[it->second]) +
                         " made; use the out-of-place form, or clone() the value first");
      });
    }
  }

  /// A value has a gradient when it requires one and the loss depends on it through values that require one.
  void find_gradients(const std::optional<std::vector<int>>& loss_outputs) {
    has_gradient_.assign(graph_.values.size(), 0);
    std::set<int32_t> memory_with_gradient;
    auto mark = [&](ValueId v) {
      if (v == kNoValue || !graph_.values[v].requires_grad) return;
      has_gradient_[v] = 1;
      memory_with_gradient.insert(memory(v));
    };
    if (loss_outputs) {
      for (int i : *loss_outputs) {
        if (i < 0 || i >= static_cast<int>(graph_.outputs.size()))
          throw InputError("split: the loss needs output " + std::to_string(i) + " of the model, which has " +
                           std::to_string(graph_.outputs.size()) + " outputs");
        mark(graph_.outputs[i]);
      }
    } else {
      for (ValueId v : graph_.outputs) mark(v);
    }
    // Backwards through the calls; what an in-place call writes may be read through any view of that memory.
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      if (!node.grad_enabled) continue;
      bool reaches_loss = false;
      for_each_definition(node, [&](ValueId v) { reaches_loss = reaches_loss || has_gradient_[v]; });
      for_each_mutation(node,
                        [&](ValueId v) { reaches_loss = reaches_loss || memory_with_gradient.contains(memory(v)); });
      if (reaches_loss) for_each_use(node, mark);
    }
  }

  const Graph& graph_;
  std::vector<int> stage_of_node_;
  std::vector<int> producer_;
  std::vector<std::vector<int>> used_by_;
  std::vector<char> has_gradient_;
  int stages_ = 1;
};

std::string boundary_name(const Graph& graph, ValueId v) {
  for (const GraphInput& input : graph.inputs)
    if (input.value == v) return input.name;
  return "v" + std::to_string(v);
}

/// Builds the stages' graphs; ids are renumbered densely in each.
class Builder {
 public:
  Builder(const Graph& graph, const Analysis& analysis)
      : graph_(graph), analysis_(analysis), local_(analysis.stages()) {
    pipe_.stages.resize(analysis.stages());
  }

  Pipe build() {
    for (const GraphInput& input : graph_.inputs) graph_of(0).inputs.push_back({input.name, local(0, input.value)});
    add_boundaries();
    add_attributes();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) add_node(analysis_.stage_of_node(i), graph_.nodes[i]);
    // Outputs last: only now has every value its number.
    for (Boundary& boundary : pipe_.boundaries) {
      Stage& producer = pipe_.stages[boundary.producer];
      boundary.output = static_cast<int>(producer.outputs.size());
      producer.outputs.push_back(static_cast<int>(&boundary - pipe_.boundaries.data()));
      producer.graph.outputs.push_back(local(boundary.producer, boundary_values_[producer.outputs.back()]));
    }
    const int last = analysis_.stages() - 1;
    for (ValueId v : graph_.outputs) graph_of(last).outputs.push_back(v == kNoValue ? kNoValue : local(last, v));
    for (const ModuleCall& module : graph_.module_calls) add_module_call(module);
    for (const Stage& stage : pipe_.stages) verify(stage.graph);
    return std::move(pipe_);
  }

 private:
  Graph& graph_of(int stage) { return pipe_.stages[stage].graph; }

  ValueId local(int stage, ValueId v) {
    const auto [it, inserted] = local_[stage].emplace(v, kNoValue);
    if (inserted) it->second = graph_of(stage).add_value(graph_.values[v]);
    return it->second;
  }

  void add_boundaries() {
    for (ValueId v = 0; v < static_cast<ValueId>(graph_.values.size()); ++v) {
      const int producer = analysis_.producer(v);
      if (producer == Analysis::kAttribute) continue;
      Boundary boundary;
      for (int stage : analysis_.used_by(v)) {
        if (stage == producer) continue;
        Stage& consumer = pipe_.stages[stage];
        boundary.consumers.push_back({stage, static_cast<int>(consumer.inputs.size())});
        consumer.inputs.push_back(static_cast<int>(pipe_.boundaries.size()));
        consumer.graph.inputs.push_back({boundary_name(graph_, v), local(stage, v)});
      }
      if (boundary.consumers.empty()) continue;
      boundary.name = boundary_name(graph_, v);
      boundary.value = graph_.values[v];
      boundary.producer = producer;
      boundary.has_gradient = analysis_.has_gradient(v);
      pipe_.boundaries.push_back(std::move(boundary));
      boundary_values_.push_back(v);
    }
  }

  void add_attributes() {
    int neighbour = 0;  // an unused parameter goes where the one registered before it went
    for (const Attribute& attribute : graph_.attributes) {
      std::vector<int> stages = {neighbour};
      if (attribute.value != kNoValue && !analysis_.used_by(attribute.value).empty())
        stages = analysis_.used_by(attribute.value);
      neighbour = stages.front();
      for (int stage : stages) {
        Attribute copy = attribute;
        if (attribute.value != kNoValue) copy.value = local(stage, attribute.value);
        graph_of(stage).attributes.push_back(std::move(copy));
      }
      if (stages.size() > 1 && attribute.kind == AttributeKind::Parameter)
        pipe_.shared.push_back({attribute.name, stages});
    }
  }

  void add_node(int stage, const Node& node) {
    position_.push_back(static_cast<int32_t>(graph_of(stage).nodes.size()));
    if (node.is_split()) return;
    Node copy = node;
    for (Argument& argument : copy.arguments)
      for (ValueId& v : argument.values)
        if (v != kNoValue) v = local(stage, v);
    for (Result& result : copy.results)
      for (ValueId& v : result.values)
        if (v != kNoValue) v = local(stage, v);
    graph_of(stage).nodes.push_back(std::move(copy));
  }

  /// A module's nodes may lie in several stages; each gets the part that it holds.
  void add_module_call(const ModuleCall& module) {
    for (int32_t i = module.begin; i < module.end; ++i) {
      if (graph_.nodes[i].is_split()) continue;
      const int stage = analysis_.stage_of_node(i);
      std::vector<ModuleCall>& calls = graph_of(stage).module_calls;
      if (i == module.begin || calls.empty() || calls.back().name != module.name || calls.back().end != position_[i])
        calls.push_back({module.name, module.type, position_[i], position_[i]});
      calls.back().end = position_[i] + 1;
    }
  }

  const Graph& graph_;
  const Analysis& analysis_;
  Pipe pipe_;
  std::vector<std::unordered_map<ValueId, ValueId>> local_;
  std::vector<ValueId> boundary_values_;  // by boundary: its id in the whole graph
  std::vector<int32_t> position_;         // by node: its index in its stage's graph
};

}  // namespace

Pipe split(const Graph& graph, const SplitOptions& options) {
  const Analysis analysis(graph, options);
  return Builder(graph, analysis).build();
}

std::vector<SplitPoint> choose_split_points(const std::vector<std::string>& candidates, int stages) {
  const int parts = static_cast<int>(candidates.size()) + 1;
  if (stages < 1 || stages > parts)
    throw InputError("split: " + std::to_string(stages) + " stages asked for, but this model has " +
                     std::to_string(candidates.size()) + " split points, which allow 1 to " + std::to_string(parts) +
                     " stages");
  std::vector<SplitPoint> points;
  for (int s = 1; s < stages; ++s) points.push_back({candidates[s * parts / stages - 1], SplitPoint::Where::Beginning});
  return points;
}

}  // namespace plumbline
