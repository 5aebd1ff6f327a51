#include "conformance/export/export_case.h"

#include <algorithm>

#include "conformance/export/architectures.h"
#include "conformance/export/call_arguments.h"
#include "conformance/export/json_layout.h"
#include "conformance/export/masks.h"
#include "conformance/export/program_form.h"
#include "reference/loss.h"
#include "reference/results.h"
#include "runtime/error.h"
#include "runtime/graph/host_tensors.h"
#include "runtime/io/write_file.h"
#include "runtime/schedule/text/csv.h"

namespace plumbline::conformance {
namespace {

Json chunk_json(const microbatch::ChunkSpec& spec) {
  if (spec.replicate) return "replicate";
  return {{"dim", spec.dim}};
}

/// Builds case.json and collects its tensors, step by step.
class CaseFiles {
 public:
  CaseFiles(const reference::Case& c, const schedule::Schedule& schedule, uint64_t seed)
      : case_(c),
        schedule_(schedule),
        seed_(seed),
        begin_(reference::saved_state(c, seed)),
        programs_(c, seed, schedule.stages, begin_),
        batches_(reference::first_batch(c)) {}

  void write(const std::filesystem::path& folder) {
    Json steps = Json::array();
    for (size_t i = 0; i < case_.steps.size(); ++i) steps.push_back(step(static_cast<int>(i), case_.steps[i]));
    if (programs_.programs().empty()) throw InputError("export: case " + case_.id + " has no train and no eval step");
    programs_.add_tensors(tensors_);
    for (const auto& [name, tensor] : begin_.optimizer) tensors_.emplace("optimizer/" + name, graph::to_host(tensor));
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed) throw WriteError("cannot create " + folder.string() + ": " + failed.message());
    write_file(folder / "case.json", json_layout(case_json(std::move(steps))));
    write_file(folder / "program.json", json_layout(programs_.to_json()));
    write_file(folder / "schedule.csv", schedule::to_csv(schedule_));
    write_tensor_file(folder / "tensors.safetensors", tensors_);
  }

 private:
  Json step(int number, const reference::Step& todo) {
    Json json = {{"kind", to_string(todo.kind)}};
    switch (todo.kind) {
      case reference::StepKind::Train:
      case reference::StepKind::Eval:
        batch_step(number, todo, json);
        break;
      case reference::StepKind::Freeze:
      case reference::StepKind::Unfreeze:
        json["parameters"] = programs_.set_trainable(todo.parameters, todo.kind == reference::StepKind::Unfreeze);
        break;
      case reference::StepKind::ZeroGrad:
      case reference::StepKind::Optimizer:
      case reference::StepKind::Read:
        break;
    }
    return json;
  }

  void batch_step(int number, const reference::Step& todo, Json& json) {
    const bool training = todo.kind == reference::StepKind::Train;
    const models::Batch batch = models::make_batch(case_, todo, seed_, batches_++);
    add_batch(number, batch, "");
    for (size_t m = 0; m < batch.parts.size(); ++m) add_batch(number, batch.parts[m], "/" + std::to_string(m));
    const Targets& targets = batch.parts.empty() ? batch.targets : batch.parts.front().targets;
    json["target"] = targets.defined();
    json["loss"] = reference::has_loss(case_.loss, targets);
    // Members with a default are left out where they have it: older readers then take older cases.
    if (const double divisor = reference::loss_divisor(case_, batch.targets); divisor != 1.0)
      json["loss_divisor"] = divisor;
    const std::vector<ProgramUse> uses = programs_.use(batch, training);
    json["microbatches"] = Json::array();
    for (size_t m = 0; m < uses.size(); ++m) {
      Json microbatch = {{"program", uses[m].program}};
      if (training) microbatch["loss_weight"] = uses[m].loss_weight;
      if (training && case_.input_gradients && !reference::requires_gradients(case_, static_cast<int>(m)))
        microbatch["input_gradients"] = false;
      json["microbatches"].push_back(std::move(microbatch));
    }
    if (training) add_masks(programs_, uses, seed_, number, train_steps_++, tensors_);
  }

  /// `of_part`: "" for a whole batch, "/0" for micro-batch 0 of one that the user divided.
  void add_batch(int step, const models::Batch& batch, const std::string& of_part) {
    const std::string prefix = "step/" + std::to_string(step) + "/";
    for (size_t i = 0; i < batch.inputs.size(); ++i)
      if (batch.inputs[i].defined())
        tensors_.emplace(prefix + "input/" + programs_.model().input_names.at(i) + of_part,
                         graph::to_host(batch.inputs[i]));
    for (size_t i = 0; i < batch.targets.size(); ++i)
      tensors_.emplace(prefix + "target" +
                           (batch.targets.size() == 1 ? "" : "/" + models::output_name(programs_.model(), i)) + of_part,
                       graph::to_host(batch.targets[i]));
  }

  Json inputs_json() const {
    Json inputs = Json::array();
    const models::Model& model = programs_.model();
    for (size_t i = 0; i < model.input_names.size(); ++i)
      inputs.push_back({{"name", model.input_names[i]}, {"chunk", chunk_json(model.input_chunks[i])}});
    return inputs;
  }

  /// The nesting of the model's outputs or targets, with the names of the outputs in their places.
  Json nested_json(const graph::OutputTree& tree) const {
    if (tree.kind == graph::OutputTree::Kind::Value)
      return models::output_name(programs_.model(), static_cast<size_t>(tree.output));
    const bool is_dict = tree.kind == graph::OutputTree::Kind::Dict;
    Json json = is_dict ? Json::object() : Json::array();
    for (size_t i = 0; i < tree.items.size(); ++i) {
      if (is_dict)
        json[tree.keys[i]] = nested_json(tree.items[i]);
      else
        json.push_back(nested_json(tree.items[i]));
    }
    return json;
  }

  Json optimizer_json() const {
    if (std::find(case_.steps.begin(), case_.steps.end(), reference::StepKind::Optimizer) == case_.steps.end())
      return nullptr;
    const reference::OptimizerSpec& spec = case_.optimizer;
    Json json = {{"kind", "sgd"}, {"learning_rate", spec.learning_rate}, {"momentum", spec.momentum}};
    if (spec.kind == reference::OptimizerKind::AdamW)
      json = {{"kind", "adamw"},         {"learning_rate", spec.learning_rate},
              {"beta1", spec.beta1},     {"beta2", spec.beta2},
              {"epsilon", spec.epsilon}, {"weight_decay", spec.weight_decay}};
    else if (spec.weight_decay != 0)
      json["weight_decay"] = spec.weight_decay;
    if (spec.loss_scale != 1) json["loss_scale"] = spec.loss_scale;
    if (spec.skip_nonfinite) json["skip_nonfinite"] = true;
    if (spec.clip_norm != 0)
      json["clip"] = {{"norm", spec.norm == reference::NormKind::Two ? Json(2) : Json("inf")},
                      {"max", spec.clip_norm},
                      {"epsilon", spec.clip_epsilon}};
    return json;
  }

  Json model_json() const {
    Json split = Json::array();
    for (const split::SplitPoint& point : models::stage_points(programs_.model(), schedule_.stages))
      split.push_back(
          {{"module", point.module}, {"at", point.where == split::SplitPoint::Where::End ? "end" : "begin"}});
    return {{"name", case_.model}, {"architecture", architecture_of(case_.model)}, {"split", std::move(split)}};
  }

  Json loss_json() const {
    Json json = {{"kind", to_string(case_.loss.kind)},
                 {"reduction", case_.loss.reduction == reference::Reduction::Mean ? "mean" : "sum"},
                 {"ignored_target", case_.loss.ignores_targets ? Json(reference::kIgnoredTarget) : Json(nullptr)}};
    if (case_.loss.class_weights) {
      const models::Batch batch = models::make_batch(case_, case_.rows, seed_, 0);
      const int64_t classes = programs_.model().forward(batch.inputs).at(0).size(-1);
      for (int64_t i = 0; i < classes; ++i) json["class_weights"].push_back(reference::class_weight(i));
    }
    if (case_.loss.parameters) json["parameters"] = reference::kLossParameters;
    const models::Model& model = programs_.model();
    if (model.compared_outputs > 1) json["outputs"] = names_of_outputs(0, model.compared_outputs);
    if (case_.loss.auxiliary == reference::AuxiliaryLosses::Added)
      json["added"] = names_of_outputs(1, 1 + model.auxiliary_losses);
    return json;
  }

  /// From number `begin` to before `end`.
  Json names_of_outputs(int begin, int end) const {
    Json names = Json::array();
    for (int i = begin; i < end; ++i) names.push_back(models::output_name(programs_.model(), static_cast<size_t>(i)));
    return names;
  }

  Json schedule_json() const {
    const bool fixed = case_.truth == reference::Truth::SameOrder || !case_.schedule_csv.empty();
    return {{"name", schedule_.name},
            {"format", schedule::csv_format(schedule_)},
            {"order", fixed ? "must-follow" : "any-legal"}};
  }

  Json results_json() const {
    std::vector<reference::ResultKind> kinds = {reference::ResultKind::Loss, reference::ResultKind::Buffer,
                                                reference::ResultKind::Param};
    if (reference::keeps_details(case_)) {
      kinds = {reference::ResultKind::Forward, reference::ResultKind::Output, reference::ResultKind::Loss,
               reference::ResultKind::Backward, reference::ResultKind::Partial};
      if (case_.input_gradients) kinds.push_back(reference::ResultKind::InputGrad);
      if (case_.parameter_hooks || case_.boundary_hooks || case_.accumulation_hooks)
        kinds.push_back(reference::ResultKind::HookCalls);
      if (case_.accumulation_hooks) kinds.push_back(reference::ResultKind::Accumulated);
      kinds.insert(kinds.end(),
                   {reference::ResultKind::Grad, reference::ResultKind::Buffer, reference::ResultKind::Param});
    }
    const auto has_step = [&](reference::StepKind kind) {
      return std::ranges::find(case_.steps, kind, &reference::Step::kind) != case_.steps.end();
    };
    const auto before_buffers = [&](reference::ResultKind kind) {
      if (std::ranges::find(kinds, kind) == kinds.end())
        kinds.insert(std::ranges::find(kinds, reference::ResultKind::Buffer), kind);
    };
    if (has_step(reference::StepKind::Read)) before_buffers(reference::ResultKind::Grad);
    if (case_.optimizer.clip_norm != 0) before_buffers(reference::ResultKind::GradNorm);
    if (case_.saves_optimizer) kinds.push_back(reference::ResultKind::OptimizerState);
    Json names = Json::array();
    for (reference::ResultKind kind : kinds) names.push_back(reference::kind_name(kind));
    return names;
  }

  Json case_json(Json steps) const {
    Json json = Json::object();
    json["format"] = kCaseFormat;
    json["id"] = case_.id;
    json["title"] = case_.title;
    json["why"] = case_.why;
    json["features"] = case_.features;
    json["truth"] = to_string(case_.truth);
    json["seed"] = seed_;
    json["dtype"] = dtype_json(reference::scalar_type(case_.dtype));
    json["model"] = model_json();
    json["mesh"] = {
        {"pp", schedule_.ranks.size() / static_cast<size_t>(case_.replicas)}, {"dp", case_.replicas}, {"tp", 1}};
    if (case_.shards_parameters) json["shards_parameters"] = true;
    json["stages"] = schedule_.stages;
    json["schedule"] = schedule_json();
    json["microbatches"] = case_.microbatches;
    json["inputs"] = inputs_json();
    if (const graph::OutputTree& outputs = programs_.model().outputs; outputs.kind != graph::OutputTree::Kind::Value)
      json["outputs"] = nested_json(outputs);
    json["target"] = chunk_json(programs_.model().target_chunk);
    if (programs_.model().compared_outputs > 1) json["targets"] = nested_json(programs_.model().targets);
    json["keyword_inputs"] = case_.keyword_inputs;
    json["input_gradients"] = case_.input_gradients;
    if (case_.whole_gradients) json["whole_gradients"] = true;
    if (case_.divided) json["divided"] = true;
    json["parameter_hooks"] = case_.parameter_hooks;
    json["boundary_hooks"] = case_.boundary_hooks;
    if (case_.accumulation_hooks) json["accumulation_hooks"] = true;
    if (case_.weight_closures) json["weight_closures"] = true;
    json["recompute"] = case_.recompute;
    json["loss"] = loss_json();
    json["gradients"] = {{"divide_by", case_.division == reference::Division::Engine ? case_.microbatches : 1},
                         {"dtype", "parameter"}};
    json["optimizer"] = optimizer_json();
    if (!case_.steps_before.empty()) json["resumes"] = true;
    json["steps"] = std::move(steps);
    json["results"] = results_json();
    return json;
  }

  const reference::Case& case_;
  const schedule::Schedule& schedule_;
  uint64_t seed_;
  reference::SavedState begin_;
  ProgramSet programs_;
  TensorMap tensors_;
  int batches_, train_steps_ = 0;
};

}  // namespace

void export_case(const reference::Case& c, const schedule::Schedule& schedule, uint64_t seed,
                 const std::filesystem::path& folder) {
  CaseFiles(c, schedule, seed).write(folder);
}

}  // namespace plumbline::conformance
