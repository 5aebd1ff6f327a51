#include "runtime/split/split.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "runtime/error.h"
#include "runtime/split/cut/analysis.h"
#include "runtime/split/cut/boundary_names.h"
#include "runtime/split/cut/stage_of_nodes.h"
#include "runtime/split/cut/view_or_copy.h"

namespace plumbline::split {
namespace {

graph::Node call(const char* op, std::vector<graph::ValueId> arguments, std::vector<graph::ValueId> results) {
  graph::Node node;
  node.op = c10::Dispatcher::singleton().findSchemaOrThrow(op, "");
  for (const c10::Argument& parameter : node.op->schema().arguments()) {
    graph::Argument argument;
    if (node.arguments.size() < arguments.size()) {
      argument.kind = graph::Argument::Kind::Value;
      argument.values = {arguments[node.arguments.size()]};
    } else {
      argument.constant = parameter.default_value().value_or(c10::IValue());
    }
    node.arguments.push_back(std::move(argument));
  }
  for (graph::ValueId v : results) node.results.push_back({false, {v}});
  return node;
}

/// Builds the stages' graphs; ids are renumbered densely in each.
class Builder {
 public:
  Builder(const graph::Graph& graph, const SplitAnalysis& analysis, std::vector<Returns> required, bool ends_early,
          const SplitOptions& options)
      : graph_(graph),
        analysis_(analysis),
        required_(std::move(required)),
        options_(options),
        names_(boundary_names(graph)),
        local_(analysis.stages(), std::vector<graph::ValueId>(graph.values.size(), graph::kNoValue)) {
    pipe_.stages.resize(analysis.stages());
    pipe_.ends_early = ends_early;
    for (int s = 0; s < stages(); ++s) graph_of(s).autocast = graph.autocast;
  }

  Pipe build() {
    for (const graph::GraphInput& input : graph_.inputs)
      graph_of(0).inputs.push_back({input.name, local(0, input.value)});
    choose_transmitted();
    for (graph::ValueId v = 0; v < static_cast<graph::ValueId>(graph_.values.size()); ++v) add_boundaries_of(v);
    if (options_.carry_random_state) carry_random_state();
    add_attributes();
    for (int s = 0; s < stages(); ++s)
      for (graph::ValueId v : analysis_.changed_in_place(s)) replace_arrived(s, v, "aten::clone");
    if (caches_casts()) hide_leaves();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) add_node(analysis_.stage_of_node(i), graph_.nodes[i]);
    // Outputs last: only now every value has its number.
    for (size_t b = 0; b < pipe_.boundaries.size(); ++b) {
      Boundary& boundary = pipe_.boundaries[b];
      Stage& producer = pipe_.stages[boundary.producer];
      boundary.output = static_cast<int>(producer.outputs.size());
      producer.outputs.push_back(static_cast<int>(b));
      const graph::ValueId v = boundary_values_[b];
      producer.graph.outputs.push_back(output_of(boundary.producer, v));
    }
    add_model_outputs();
    for (const graph::ModuleCall& module : graph_.module_calls) add_module_call(module);
    for (const Stage& stage : pipe_.stages) graph::verify(stage.graph);
    return std::move(pipe_);
  }

 private:
  /// Represents the generator's state among boundary_values_.
  static constexpr graph::ValueId kRandomState = -2;

  /// The nodes of a stage's graph that stand for one of the whole graph.
  struct Place {
    int32_t begin = 0, end = 0;
  };

  int stages() const { return analysis_.stages(); }
  graph::Graph& graph_of(int stage) { return pipe_.stages[stage].graph; }

  graph::ValueId local(int stage, graph::ValueId v) {
    graph::ValueId& id = local_[stage][v];
    if (id == graph::kNoValue) id = graph_of(stage).add_value(graph_.values[v]);
    return id;
  }

  /// Parameters, and buffers that their stage writes, that travel as values: the first stage that uses one counts as
  /// its producer.
  void choose_transmitted() {
    std::unordered_set<std::string> unknown;
    for (const auto& [name, use] : options_.multi_use_of) unknown.insert(name);
    for (const graph::Attribute& attribute : graph_.attributes) {
      if (attribute.value != graph::kNoValue && analysis_.is_written_buffer(attribute.value) &&
          analysis_.used_by(attribute.value).size() > 1)
        transmitted_.emplace(attribute.value, &attribute);
      if (attribute.kind != graph::AttributeKind::Parameter) continue;
      MultiUse use = options_.multi_use;
      const auto look_up = [&](const std::string& name) {
        const auto it = options_.multi_use_of.find(name);
        if (it != options_.multi_use_of.end()) use = it->second;
        unknown.erase(name);
      };
      for (const std::string& alias : attribute.aliases) look_up(alias);
      look_up(attribute.name);
      if (use == MultiUse::Transmit && attribute.value != graph::kNoValue &&
          analysis_.used_by(attribute.value).size() > 1)
        transmitted_.emplace(attribute.value, &attribute);
    }
    if (!unknown.empty())
      throw InputError("split: there is no parameter '" + *unknown.begin() +
                       "' to transmit or replicate; use one of the names that the model's parameters have");
  }

  void add_boundaries_of(graph::ValueId v) {
    const std::vector<int>& users = analysis_.used_by(v);
    const auto transmitted = transmitted_.find(v);
    int producer = analysis_.producer(v);
    if (producer == SplitAnalysis::kAttribute) {
      if (transmitted == transmitted_.end()) return;
      producer = users.front();
    }
    std::vector<int> consumers;
    for (int stage : users)
      if (stage != producer) consumers.push_back(stage);
    if (consumers.empty()) return;
    Boundary boundary;
    boundary.name = transmitted == transmitted_.end() ? names_[v] : transmitted->second->name;
    boundary.value = graph_.values[v];
    boundary.value.requires_grad = analysis_.requires_grad(v);
    boundary.has_gradient = analysis_.has_gradient(v);
    if (options_.route == Route::Direct) {
      add_boundary(boundary, v, producer, consumers);
      return;
    }
    // Hop by hop: each consumer of a value forwards it.
    for (size_t i = 0; i < consumers.size(); ++i) {
      const int from = i == 0 ? producer : consumers[i - 1];
      const int step = options_.route == Route::Neighbours ? 1 : consumers[i] - from;
      for (int stage = from; stage < consumers[i]; stage += step) add_boundary(boundary, v, stage, {stage + step});
    }
  }

  void add_boundary(Boundary boundary, graph::ValueId v, int producer, const std::vector<int>& consumers) {
    boundary.producer = producer;
    for (int stage : consumers) {
      Stage& consumer = pipe_.stages[stage];
      boundary.consumers.push_back({stage, static_cast<int>(consumer.inputs.size())});
      consumer.inputs.push_back(static_cast<int>(pipe_.boundaries.size()));
      consumer.graph.inputs.push_back(
          {boundary.name, v == kRandomState ? consumer.graph.add_value(boundary.value) : local(stage, v)});
    }
    pipe_.boundaries.push_back(std::move(boundary));
    boundary_values_.push_back(v);
  }

  /// From each stage that draws to the next one that draws.
  void carry_random_state() {
    Boundary state;
    state.name = "random state";
    state.value.dtype = at::kByte;
    state.value.sizes = at::detail::getDefaultCPUGenerator().get_state().sizes().vec();
    int from = -1;
    for (int stage = 0; stage < stages(); ++stage) {
      if (!analysis_.draws(stage)) continue;
      const int step = options_.route == Route::Neighbours ? 1 : stage - from;
      for (int hop = from; from >= 0 && hop < stage; hop += step) {
        add_boundary(state, kRandomState, hop, {hop + step});
        const graph::ValueId arrived = graph_of(hop + step).inputs.back().value;
        graph_of(hop + step).nodes.push_back(call("plumbline::set_random_state", {arrived}, {}));
      }
      from = stage;
    }
  }

  /// The value that a stage sends: taken at its end, when all its calls are made.
  graph::ValueId output_of(int stage, graph::ValueId v) {
    graph::Graph& graph = graph_of(stage);
    if (v == kRandomState) {
      graph::Value value;
      value.dtype = at::kByte;
      const graph::ValueId state = graph.add_value(value);
      graph.nodes.push_back(call("plumbline::get_random_state", {}, {state}));
      return state;
    }
    const graph::ValueId id = local(stage, v);
    return analysis_.is_written_buffer(v) ? add_copy(stage, id) : id;
  }

  void add_model_outputs() {
    const int last = stages() - 1;
    std::vector<graph::ValueId>& outputs = graph_of(last).outputs;
    std::vector<graph::ValueId> model = graph_.outputs;
    for (int i : options_.local_losses) {
      const graph::ValueId v = graph_.outputs[i];
      if (v == graph::kNoValue) continue;
      const int stage = analysis_.producer(v);
      if (stage == last) {
        pipe_.local_losses.push_back({last, i, i});
        continue;
      }
      model[i] = graph::kNoValue;
      pipe_.local_losses.push_back({stage, static_cast<int>(graph_of(stage).outputs.size()), i});
      graph_of(stage).outputs.push_back(output_of(stage, v));
    }
    for (graph::ValueId v : model) outputs.push_back(v == graph::kNoValue ? graph::kNoValue : output_of(last, v));
  }

  void add_attributes() {
    std::unordered_set<std::string> unknown(options_.loss_parameters.begin(), options_.loss_parameters.end());
    int neighbour = 0;  // an unused parameter joins the stage of the one registered before it
    // Or a stage after the one in which forward returned.
    for (const graph::Attribute& attribute : graph_.attributes) {
      bool is_of_loss = unknown.erase(attribute.name) > 0;
      for (const std::string& alias : attribute.aliases) is_of_loss |= unknown.erase(alias) > 0;
      std::vector<int> owners = {neighbour};
      if (attribute.value != graph::kNoValue && !analysis_.used_by(attribute.value).empty())
        owners = analysis_.used_by(attribute.value);
      else if (pipe_.ends_early)
        continue;
      else if (is_of_loss)
        owners = {stages() - 1};
      if (transmitted_.contains(attribute.value)) owners.resize(1);
      if (is_of_loss && !pipe_.ends_early && owners.back() != stages() - 1) refuse_loss_parameter(attribute, owners);
      neighbour = owners.front();
      for (int stage : owners) {
        graph::Attribute copy = attribute;
        if (attribute.value != graph::kNoValue) copy.value = local(stage, attribute.value);
        graph_of(stage).attributes.push_back(std::move(copy));
      }
      if (owners.size() > 1 && attribute.kind == graph::AttributeKind::Parameter)
        pipe_.shared.push_back({attribute.name, owners});
    }
    if (!unknown.empty())
      throw InputError(
          "split: there is no parameter '" + *unknown.begin() +
          "' for the loss function (loss_parameters); use one of the names that the model's parameters have");
  }

  [[noreturn]] void refuse_loss_parameter(const graph::Attribute& attribute, const std::vector<int>& owners) const {
    throw InputError("split: loss_parameters names '" + attribute.name + "', which belongs to stage " +
                     std::to_string(owners.back()) + ", whose forward reads it; a loss reads parameters of the last " +
                     "stage, " + std::to_string(stages() - 1) +
                     ", only: let that one use it, too (MultiUse::Replicate), or leave it out");
  }

  bool caches_casts() const {
    return std::any_of(graph_.autocast.begin(), graph_.autocast.end(),
                       [](const graph::AutocastRegion& region) { return region.enabled && region.cache; });
  }

  /// A received value is a leaf, and autocast caches the casts of leaves for their next use, with gradients summed in
  /// the lower precision. In the uncut model only parameters are leaves.
  void hide_leaves() {
    for (size_t b = 0; b < pipe_.boundaries.size(); ++b) {
      const graph::ValueId v = boundary_values_[b];
      if (v == kRandomState || transmitted_.contains(v) || !pipe_.boundaries[b].value.requires_grad) continue;
      for (const Boundary::Consumer& consumer : pipe_.boundaries[b].consumers)
        if (graph_of(consumer.stage).inputs[consumer.input].value == local(consumer.stage, v))
          replace_arrived(consumer.stage, v, "aten::alias");
    }
  }

  /// Makes the stage's calls use the result of `op` on a received value: a clone if they write it, since it may belong
  /// to the stage that made it, and is a leaf.
  void replace_arrived(int stage, graph::ValueId v, const char* op) {
    graph::Graph& graph = graph_of(stage);
    const graph::ValueId arrived = local(stage, v);
    const graph::ValueId copy = graph.add_value(graph.values[arrived]);
    graph.values[copy].storage = -1;
    graph.nodes.push_back(call(op, {arrived}, {copy}));
    local_[stage][v] = copy;
  }

  graph::ValueId copy_of_buffer(int stage, graph::ValueId v) {
    const auto [it, inserted] = buffer_copies_.emplace(v, graph::kNoValue);
    if (inserted) it->second = add_copy(stage, local(stage, v));
    return it->second;
  }

  graph::ValueId add_copy(int stage, graph::ValueId id) {
    graph::Graph& graph = graph_of(stage);
    const graph::ValueId copy = graph.add_value(graph.values[id]);
    graph.values[copy].storage = -1;
    graph.nodes.push_back(call("aten::clone", {id}, {copy}));
    return copy;
  }

  void add_node(int stage, const graph::Node& node) {
    const auto index = static_cast<int32_t>(places_.size());
    Place& place = places_.emplace_back();
    if (node.is_split()) return;
    graph::Node copy = node;
    for (graph::Argument& argument : copy.arguments)
      for (graph::ValueId& v : argument.values)
        if (v != graph::kNoValue)
          v = analysis_.reads_written_buffer(index, v) ? copy_of_buffer(stage, v) : local(stage, v);
    place.begin = static_cast<int32_t>(graph_of(stage).nodes.size());
    if (required_[index] == Returns::Copy) give_contiguous_copy(stage, copy);
    if (required_[index] == Returns::View) make_view(copy, graph_.values[node.results[0].values[0]].sizes);
    for (graph::Result& result : copy.results)
      for (graph::ValueId& v : result.values)
        if (v != graph::kNoValue) v = local(stage, v);
    graph_of(stage).nodes.push_back(std::move(copy));
    place.end = static_cast<int32_t>(graph_of(stage).nodes.size());
  }

  /// Of a contiguous tensor each of these calls returns a view, unless it asks for another memory format.
  void give_contiguous_copy(int stage, graph::Node& node) {
    graph::ValueId& given = node.arguments[0].values[0];
    given = add_copy(stage, given);
    graph::Node& clone = graph_of(stage).nodes.back();
    clone.arguments[1].constant = at::MemoryFormat::Contiguous;
    clone.grad_enabled = node.grad_enabled;
    clone.autocast = node.autocast;
  }

  /// Where strides do not allow a view, the call then fails, since a copy would compute something else.
  static void make_view(graph::Node& node, const std::vector<int64_t>& sizes) {
    const std::string& name = node.op->schema().name();
    const bool reshapes = name != "aten::contiguous" && name != "aten::resolve_conj";
    const bool has_computed_sizes =
        node.arguments.size() > 1 && node.arguments[1].kind == graph::Argument::Kind::NumberList;
    if (has_computed_sizes) return;
    graph::Node view = call(reshapes ? "aten::view" : "aten::alias", {node.arguments[0].values[0]}, {});
    if (reshapes) view.arguments[1].constant = sizes;
    node.op = view.op;
    node.arguments = std::move(view.arguments);
  }

  /// A module's nodes may be in several stages; each gets its part of the module.
  void add_module_call(const graph::ModuleCall& module) {
    for (int32_t i = module.begin; i < module.end; ++i) {
      if (graph_.nodes[i].is_split()) continue;
      const int stage = analysis_.stage_of_node(i);
      std::vector<graph::ModuleCall>& calls = graph_of(stage).module_calls;
      const auto [begin, end] = places_[i];
      if (i == module.begin || calls.empty() || calls.back().name != module.name || calls.back().end != begin)
        calls.push_back({module.name, module.type, begin, begin});
      calls.back().end = end;
    }
  }

  const graph::Graph& graph_;
  const SplitAnalysis& analysis_;
  const std::vector<Returns> required_;  // by node
  const SplitOptions& options_;
  std::vector<std::string> names_;  // by value
  Pipe pipe_;
  std::vector<std::vector<graph::ValueId>> local_;  // by stage and value of the whole graph
  std::unordered_map<graph::ValueId, const graph::Attribute*> transmitted_;
  std::vector<graph::ValueId> boundary_values_;  // by boundary: its id in the whole graph
  std::unordered_map<graph::ValueId, graph::ValueId> buffer_copies_;
  std::vector<Place> places_;  // by node of the whole graph
};

}  // namespace

Pipe split(const graph::Graph& graph, const SplitOptions& options) {
  const auto [stage_of_node, ends_early] = stage_of_nodes(graph, options);
  const SplitAnalysis analysis(graph, stage_of_node, options);
  return Builder(graph, analysis, required_returns(graph, stage_of_node), ends_early, options).build();
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

}  // namespace plumbline::split
