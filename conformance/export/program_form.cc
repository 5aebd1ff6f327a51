#include "conformance/export/program_form.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "conformance/export/call_arguments.h"
#include "conformance/export/export_case.h"
#include "conformance/export/opset.h"
#include "reference/loss.h"
#include "reference/named_tensors.h"
#include "reference/oracle/microbatches.h"
#include "runtime/graph/host_tensors.h"
#include "runtime/split/module_pipe.h"

namespace plumbline::conformance {
namespace {

Json value_json(const PortableValue& value) { return {{"dtype", dtype_json(value.dtype)}, {"shape", value.shape}}; }

Json number_json(int value) { return value < 0 ? Json(nullptr) : Json(value); }

Json names_json(const std::vector<PortableName>& names) {
  Json json = Json::array();
  for (const PortableName& item : names) json.push_back({{"name", item.name}, {"value", number_json(item.value)}});
  return json;
}

std::string constant_key(size_t program, size_t stage, int value) {
  return "constant/" + std::to_string(program) + "/" + std::to_string(stage) + "/" + std::to_string(value);
}

using Names = std::vector<std::string>;
using Owned = std::vector<PortableName> PortableStage::*;  // its parameters or its buffers

/// The stages that have a parameter or a buffer: those of the first program that uses it. A split gives one that the
/// program does not use to its last stage.
std::vector<int> owners(const std::vector<Program>& programs, const std::string& name, Owned kind) {
  std::vector<int> unused;
  for (const Program& program : programs) {
    std::vector<int> stages;
    bool is_used = false;
    for (size_t s = 0; s < program.stages.size(); ++s)
      for (const PortableName& item : program.stages[s].*kind) {
        if (item.name != name) continue;
        stages.push_back(static_cast<int>(s));
        is_used = is_used || item.value >= 0;
      }
    if (is_used) return stages;
    if (&program == &programs.front()) unused = stages;
  }
  return unused;
}

/// Of a stage in a program: null for one that the stage has and the program does not use.
Json owned_names_json(const std::vector<Program>& programs, size_t p, size_t s, Owned kind) {
  std::vector<PortableName> names;
  const auto add = [&](const PortableName& item, int value) {
    const std::vector<int> stages = owners(programs, item.name, kind);
    if (std::ranges::find(stages, static_cast<int>(s)) != stages.end()) names.push_back({item.name, value});
  };
  const std::vector<PortableName>& own = programs[p].stages[s].*kind;
  for (const PortableName& item : own) add(item, item.value);
  for (const PortableStage& other : programs[p].stages)
    for (const PortableName& item : other.*kind)
      if (std::ranges::find(own, item.name, &PortableName::name) == own.end()) add(item, -1);
  return names_json(names);
}

/// The inputs of a stage, from the model or from other stages, by name.
std::map<std::string, int> taken_by(const Program& program, size_t s) {
  const split::Pipe& pipe = program.pipe;
  const std::vector<PortableName>& inputs = program.stages[s].inputs;
  std::map<std::string, int> values;
  for (size_t i = 0; i < inputs.size(); ++i)  // none in a stage that the program does not reach
    values.emplace(s == 0 ? inputs[i].name : pipe.boundaries[pipe.stages[s].inputs[i]].name, inputs[i].value);
  return values;
}

/// The values that a stage other than the last sends to others, by name.
std::map<std::string, int> given_by(const Program& program, size_t s) {
  std::map<std::string, int> values;
  for (int b : program.pipe.stages[s].outputs) {
    const split::Boundary& boundary = program.pipe.boundaries[b];
    values.emplace(boundary.name, program.stages[s].outputs.at(boundary.output));
  }
  return values;
}

/// The boundaries that a stage receives, or sends, in any of the programs: a value that is None in one program has its
/// place there too.
Names boundaries_of(const std::vector<Program>& programs, size_t s, std::vector<int> split::Stage::* side) {
  Names names;
  for (const Program& program : programs)
    for (int b : program.pipe.stages[s].*side)
      if (const std::string& name = program.pipe.boundaries[b].name; std::ranges::find(names, name) == names.end())
        names.push_back(name);
  return names;
}

/// In the order of `names`, with null for values that this program lacks.
Json ports_json(const char* direction, const char* what, const Names& names, const std::map<std::string, int>& values) {
  Json ports = Json::array();
  for (const std::string& name : names) {
    const auto it = values.find(name);
    ports.push_back({{direction, what}, {"name", name}, {"value", number_json(it == values.end() ? -1 : it->second)}});
  }
  return ports;
}

Json model_outputs_json(const models::Model& model, const Program& program, const PortableStage& stage) {
  Json outputs = Json::array();
  for (size_t i = 0; i < stage.outputs.size(); ++i)
    if (std::ranges::find(program.pipe.local_losses, static_cast<int>(i), &split::LocalLoss::model_output) ==
        program.pipe.local_losses.end())
      outputs.push_back(
          {{"to", "model"}, {"name", models::output_name(model, i)}, {"value", number_json(stage.outputs[i])}});
  return outputs;
}

/// The local losses of the stage, after its other outputs.
void add_losses_json(const models::Model& model, const Program& program, size_t s, Json& outputs) {
  for (const split::LocalLoss& loss : program.pipe.local_losses)
    if (loss.stage == static_cast<int>(s))
      outputs.push_back({{"to", "loss"},
                         {"name", models::output_name(model, loss.model_output)},
                         {"value", number_json(program.stages[s].outputs.at(loss.output))}});
}

Json stage_json(const std::vector<Program>& programs, const models::Model& model, size_t p, size_t s) {
  const Program& program = programs[p];
  const PortableStage& stage = program.stages[s];
  Json values = Json::array(), constants = Json::array(), nodes = Json::array();
  for (const PortableValue& value : stage.values) values.push_back(value_json(value));
  for (const auto& [value, tensor] : stage.constants)
    constants.push_back({{"tensor", constant_key(p, s, value)}, {"value", value}});
  for (const PortableNode& node : stage.nodes)
    nodes.push_back({{"op", node.op}, {"arguments", node.arguments}, {"results", node.results}});
  Json json = Json::object();
  json["inputs"] =
      ports_json("from", s == 0 ? "model" : "boundary",
                 s == 0 ? model.input_names : boundaries_of(programs, s, &split::Stage::inputs), taken_by(program, s));
  for (const PortableName& mask : stage.masks)
    json["inputs"].push_back({{"from", "mask"}, {"name", mask.name}, {"value", mask.value}});
  json["parameters"] = owned_names_json(programs, p, s, &PortableStage::parameters);
  json["buffers"] = owned_names_json(programs, p, s, &PortableStage::buffers);
  json["constants"] = std::move(constants);
  json["values"] = std::move(values);
  json["nodes"] = std::move(nodes);
  const bool is_last = s + 1 == program.stages.size();
  json["outputs"] = Json::array();
  if (!is_last)
    json["outputs"] =
        ports_json("to", "boundary", boundaries_of(programs, s, &split::Stage::outputs), given_by(program, s));
  if (is_last || s == static_cast<size_t>(program.last))
    for (Json& output : model_outputs_json(model, program, stage)) json["outputs"].push_back(std::move(output));
  add_losses_json(model, program, s, json["outputs"]);
  json["buffer_updates"] = names_json(stage.buffer_updates);
  return json;
}

Json boundaries_json(const Program& program) {
  Json boundaries = Json::array();
  for (const split::Boundary& boundary : program.pipe.boundaries) {
    Json consumers = Json::array();
    for (const split::Boundary::Consumer& consumer : boundary.consumers) consumers.push_back(consumer.stage);
    boundaries.push_back({{"name", boundary.name},
                          {"producer", boundary.producer},
                          {"consumers", std::move(consumers)},
                          {"has_gradient", program.training && boundary.has_gradient},
                          {"dtype", dtype_json(boundary.value.dtype)},
                          {"shape", boundary.value.sizes}});
  }
  return boundaries;
}

/// Every parameter or buffer, in the order of the first program, with the stages that have it. `frozen`: the parameters
/// that require no gradient before the first step.
Json owned_json(const std::vector<Program>& programs, graph::AttributeKind kind, const std::set<std::string>& frozen) {
  const Owned owned = kind == graph::AttributeKind::Parameter ? &PortableStage::parameters : &PortableStage::buffers;
  std::vector<const graph::Attribute*> order;
  for (const split::Stage& stage : programs.front().pipe.stages)
    for (const graph::Attribute& attribute : stage.graph.attributes)
      if (attribute.kind == kind && std::ranges::find(order, attribute.name, &graph::Attribute::name) == order.end())
        order.push_back(&attribute);
  Json all = Json::array();
  for (const graph::Attribute* attribute : order) {
    Json json = {{"name", attribute->name},
                 {"aliases", attribute->aliases},
                 {"stages", owners(programs, attribute->name, owned)},
                 {"dtype", dtype_json(attribute->tensor.scalar_type())},
                 {"shape", attribute->tensor.sizes()}};
    if (kind == graph::AttributeKind::Parameter) json["requires_grad"] = !frozen.contains(attribute->name);
    all.push_back(std::move(json));
  }
  return all;
}

}  // namespace

ProgramSet::ProgramSet(const reference::Case& c, uint64_t seed, int stages, const reference::SavedState& begin)
    : case_(c), model_(reference::model_of(c, seed, begin)), stages_(static_cast<size_t>(stages)) {
  split_ = models::case_split(c, model_, stages);
  for (const auto& item : model_.module->named_parameters())
    if (!item.value().requires_grad()) frozen_.insert(item.key());
}

std::vector<std::string> ProgramSet::set_trainable(const std::string& pattern, bool trainable) {
  return plumbline::reference::set_trainable(reference::first_names(model_.module->named_parameters()), pattern,
                                             trainable);
}

int ProgramSet::program_for(const std::vector<at::Tensor>& inputs, bool training) {
  std::string key = training ? "train" : "eval";
  for (const at::Tensor& input : inputs)
    key += " " + graph::describe(input) + (input.defined() && input.requires_grad() ? "*" : "");
  for (const auto& item : model_.module->named_parameters()) key += item.value().requires_grad() ? "+" : "-";
  const auto [it, is_new] = known_.emplace(key, static_cast<int>(programs_.size()));
  if (!is_new) return it->second;
  Program program;
  program.training = training;
  program.pipe = split::make_pipe({model_.module.get(), model_.forward, model_.input_names}, inputs, training, split_);
  for (int s = 0; s < program.pipe.num_stages(); ++s)
    program.stages.push_back(
        portable_stage(program.pipe.stages[s].graph, "export: case " + case_.id + ", stage " + std::to_string(s)));
  program.last = program.pipe.num_stages() - 1;
  // Stages that the micro-batch does not reach.
  if (programs_.empty() && program.pipe.stages.size() < stages_)
    throw InputError("export: case " + case_.id +
                     ": its first micro-batch leaves the pipeline early; the first program "
                     "must have all stages");
  program.pipe.stages.resize(std::max(program.pipe.stages.size(), stages_));
  program.stages.resize(program.pipe.stages.size());
  programs_.push_back(std::move(program));
  return it->second;
}

/// The weights of the micro-batches in a mean: their rows, or their targets that are not ignored.
std::vector<double> ProgramSet::counts(const std::vector<ProgramUse>& uses) const {
  std::vector<double> counts(uses.size(), 1.0);
  for (size_t m = 0; m < uses.size(); ++m) {
    if (reference::counts_targets(case_.loss)) {
      counts[m] = reference::counted_targets(case_.loss, uses[m].targets);
      continue;
    }
    for (size_t i = uses[m].inputs.size(); i-- > 0;)
      if (!model_.input_chunks[i].replicate && uses[m].inputs[i].defined())
        counts[m] = static_cast<double>(uses[m].inputs[i].size(model_.input_chunks[i].dim));
  }
  return counts;
}

std::vector<ProgramUse> ProgramSet::use(const models::Batch& batch, bool training) {
  const int count = case_.microbatches;
  std::vector<ProgramUse> uses(count);
  std::vector<models::Batch> chunks = reference::divide(case_, model_, batch, count, /*training=*/false);
  for (int m = 0; m < count; ++m) {
    uses[m].inputs = std::move(chunks[m].inputs);
    uses[m].targets = std::move(chunks[m].targets);
  }
  for (int m = 0; training && m < count; ++m)
    if (reference::requires_gradients(case_, m))
      for (at::Tensor& input : uses[m].inputs)
        if (input.defined() && input.is_floating_point()) input = input.detach().requires_grad_();
  for (ProgramUse& use : uses) use.program = program_for(use.inputs, training);
  if (!training) return uses;
  if (case_.loss.reduction == reference::Reduction::Mean && !case_.loss.equal_weights) {
    const std::vector<double> weights = counts(uses);
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (int m = 0; m < count; ++m) uses[m].loss_weight = weights[m] * count / total;
  }
  for (ProgramUse& use : uses) use.loss_weight *= case_.optimizer.loss_scale;
  return uses;
}

Json ProgramSet::to_json() const {
  Json programs = Json::array();
  for (size_t p = 0; p < programs_.size(); ++p) {
    Json stages = Json::array();
    for (size_t s = 0; s < programs_[p].stages.size(); ++s) stages.push_back(stage_json(programs_, model_, p, s));
    programs.push_back({{"training", programs_[p].training},
                        {"boundaries", boundaries_json(programs_[p])},
                        {"stages", std::move(stages)}});
  }
  Json json = Json::object();
  json["format"] = kProgramFormat;
  json["opset"] = kOpset;
  json["stages"] = programs_.front().stages.size();
  json["parameters"] = owned_json(programs_, graph::AttributeKind::Parameter, frozen_);
  json["buffers"] = owned_json(programs_, graph::AttributeKind::Buffer, frozen_);
  json["programs"] = std::move(programs);
  return json;
}

void ProgramSet::add_tensors(TensorMap& tensors) const {
  for (const split::Stage& stage : programs_.front().pipe.stages)
    for (const graph::Attribute& attribute : stage.graph.attributes) {
      if (attribute.kind == graph::AttributeKind::Constant) continue;
      const char* kind = attribute.kind == graph::AttributeKind::Parameter ? "parameter/" : "buffer/";
      tensors.insert_or_assign(kind + attribute.name, graph::to_host(attribute.tensor.detach()));
    }
  for (size_t p = 0; p < programs_.size(); ++p)
    for (size_t s = 0; s < programs_[p].stages.size(); ++s)
      for (const auto& [value, tensor] : programs_[p].stages[s].constants)
        tensors.emplace(constant_key(p, s, value), graph::to_host(tensor.detach()));
}

}  // namespace plumbline::conformance
