#include "conformance/export/export_case.h"

#include "conformance/export/call_arguments.h"
#include "conformance/export/json_layout.h"
#include "conformance/export/masks.h"
#include "conformance/export/program_form.h"
#include "reference/loss.h"
#include "reference/results.h"
#include "runtime/error.h"
#include "runtime/graph/host_tensors.h"
#include "runtime/schedule/text/csv.h"

namespace plumbline {
namespace {

std::string_view loss_kind(LossKind kind) {
  switch (kind) {
    case LossKind::Sum:
      return "sum";
    case LossKind::Mse:
      return "mse";
    case LossKind::CrossEntropy:
      return "cross-entropy";
    case LossKind::Output:
      return "output";
  }
  throw Error("export: a loss without a name");
}

std::string_view step_kind(StepKind kind) {
  switch (kind) {
    case StepKind::Train:
      return "train";
    case StepKind::Eval:
      return "eval";
    case StepKind::ZeroGrad:
      return "zero_grad";
    case StepKind::Optimizer:
      return "optimizer";
  }
  throw Error("export: a step without a name");
}

Json chunk_json(const ChunkSpec& spec) {
  if (spec.replicate) return "replicate";
  return {{"dim", spec.dim}};
}

/// Builds case.json and collects its tensors, step by step.
class CaseFiles {
 public:
  CaseFiles(const Case& c, const Schedule& schedule, uint64_t seed)
      : case_(c), schedule_(schedule), seed_(seed), programs_(c, seed, schedule.stages) {}

  void write(const std::filesystem::path& folder) {
    Json steps = Json::array();
    for (size_t i = 0; i < case_.steps.size(); ++i) steps.push_back(step(static_cast<int>(i), case_.steps[i]));
    if (programs_.programs().empty()) throw InputError("export: case " + case_.id + " has no train and no eval step");
    programs_.add_tensors(tensors_);
    std::filesystem::create_directories(folder);
    write_file(folder / "case.json", json_layout(case_json(std::move(steps))));
    write_file(folder / "program.json", json_layout(programs_.to_json()));
    write_file(folder / "schedule.csv", to_csv(schedule_));
    write_tensor_file(folder / "tensors.safetensors", tensors_);
  }

 private:
  Json step(int number, StepKind kind) {
    Json json = {{"kind", step_kind(kind)}};
    if (kind != StepKind::Train && kind != StepKind::Eval) return json;
    const Batch batch = make_batch(case_.model, case_.dtype, case_.rows, seed_, batches_++);
    const std::string prefix = "step/" + std::to_string(number) + "/";
    for (size_t i = 0; i < batch.inputs.size(); ++i)
      tensors_.emplace(prefix + "input/" + programs_.model().input_names.at(i), to_host(batch.inputs[i]));
    json["target"] = batch.target.defined();
    if (batch.target.defined()) tensors_.emplace(prefix + "target", to_host(batch.target));
    const std::vector<ProgramUse> uses = programs_.use(batch, kind == StepKind::Train);
    json["microbatches"] = Json::array();
    for (const ProgramUse& use : uses) {
      Json microbatch = {{"program", use.program}};
      if (kind == StepKind::Train) microbatch["loss_weight"] = use.loss_weight;
      json["microbatches"].push_back(std::move(microbatch));
    }
    if (kind == StepKind::Train) add_masks(programs_, uses, seed_, number, train_steps_++, tensors_);
    return json;
  }

  Json inputs_json() const {
    Json inputs = Json::array();
    const Model& model = programs_.model();
    for (size_t i = 0; i < model.input_names.size(); ++i)
      inputs.push_back({{"name", model.input_names[i]}, {"chunk", chunk_json(model.input_chunks[i])}});
    return inputs;
  }

  Json optimizer_json() const {
    for (StepKind kind : case_.steps)
      if (kind == StepKind::Optimizer)
        return {
            {"kind", "sgd"}, {"learning_rate", case_.optimizer.learning_rate}, {"momentum", case_.optimizer.momentum}};
    return nullptr;
  }

  Json results_json() const {
    if (!keeps_details(case_)) return {"loss", "buffer", "param"};
    return {"forward", "output", "loss", "backward", "partial", "grad", "buffer", "param"};
  }

  Json case_json(Json steps) const {
    Json json = Json::object();
    json["format"] = kCaseFormat;
    json["id"] = case_.id;
    json["title"] = case_.title;
    json["why"] = case_.why;
    json["truth"] = to_string(case_.truth);
    json["seed"] = seed_;
    json["dtype"] = dtype_json(scalar_type(case_.dtype));
    json["model"] = {{"name", case_.model}};
    json["mesh"] = {{"pp", schedule_.ranks.size()}, {"dp", 1}, {"tp", 1}};
    json["stages"] = schedule_.stages;
    json["schedule"] = {{"name", schedule_.name},
                        {"format", csv_format(schedule_)},
                        {"order", case_.truth == Truth::SameOrder ? "must-follow" : "any-legal"}};
    json["microbatches"] = case_.microbatches;
    json["inputs"] = inputs_json();
    json["loss"] = {{"kind", loss_kind(case_.loss.kind)},
                    {"reduction", case_.loss.reduction == Reduction::Mean ? "mean" : "sum"}};
    json["gradients"] = {{"divide_by", case_.divide_by_microbatches ? case_.microbatches : 1}, {"dtype", "parameter"}};
    json["optimizer"] = optimizer_json();
    json["steps"] = std::move(steps);
    json["results"] = results_json();
    return json;
  }

  const Case& case_;
  const Schedule& schedule_;
  uint64_t seed_;
  ProgramSet programs_;
  TensorMap tensors_;
  int batches_ = 0, train_steps_ = 0;
};

}  // namespace

void export_case(const Case& c, const Schedule& schedule, uint64_t seed, const std::filesystem::path& folder) {
  CaseFiles(c, schedule, seed).write(folder);
}

}  // namespace plumbline
