#include "conformance/corpus/case_file.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "conformance/corpus/features.h"
#include "conformance/protocol/toml.h"
#include "reference/models/parts/names.h"
#include "runtime/engine/stage/recompute_options.h"
#include "runtime/error.h"
#include "runtime/schedule/check/check.h"
#include "runtime/schedule/text/csv.h"

namespace plumbline::conformance {
namespace {

using reference::StepKind;

constexpr const char* kSchema = "plumbline-cases/1";
constexpr int kMostRows = 65536;  // rows, micro-batches

const std::vector<std::string> kCaseKeys = {
    // what it is
    "id", "title", "why", "truth",
    // model and loss
    "model", "dtype", "rows", "microbatches", "loss",
    // steps
    "divides", "steps", "repeat_steps", "steps_before", "saves_optimizer", "optimizer",
    // inputs and hooks
    "input_gradients", "gradient_microbatches", "whole_gradients", "divided", "keyword_inputs", "parameter_hooks",
    "boundary_hooks", "accumulation_hooks", "weight_closures",
    // schedule and ranks
    "schedule", "recompute", "replicas", "shards_parameters", "features", "data"};

std::string one_line_of(const TomlPlace& place) {
  std::string text = place.text();
  if (text.find('\n') != std::string::npos) place.refuse("expected one line");
  return text;
}

bool has_step(const std::vector<reference::Step>& steps, StepKind kind) {
  return std::ranges::find(steps, kind, &reference::Step::kind) != steps.end();
}

/// It is a part of paths and patterns.
std::string id_of(const TomlPlace& place) {
  std::string id = place.text();
  const bool plain =
      std::ranges::all_of(id, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
  if (!plain || id.front() == '-') place.fail("lower-case letters, digits and '-'");
  return id;
}

reference::LossSpec loss_of(const TomlPlace& place) {
  place.expect_only({"kind", "reduction", "ignores_targets", "ignored_rows", "class_weights", "equal_weights",
                     "parameters", "auxiliary"});
  reference::LossSpec loss{static_cast<reference::LossKind>(place["kind"].one_of(reference::kLossWords)),
                           static_cast<reference::Reduction>(place["reduction"].one_of(reference::kReductionWords))};
  for (const auto& [key, member] : {std::pair{"ignores_targets", &reference::LossSpec::ignores_targets},
                                    std::pair{"class_weights", &reference::LossSpec::class_weights},
                                    std::pair{"equal_weights", &reference::LossSpec::equal_weights},
                                    std::pair{"parameters", &reference::LossSpec::parameters}})
    if (const auto value = place.find(key)) loss.*member = value->boolean();
  if (const auto ignored = place.find("ignored_rows")) {
    loss.ignored_rows = ignored->small(1, kMostRows);
    if (!loss.ignores_targets || loss.reduction == reference::Reduction::Mean)
      ignored->refuse("goes with ignores_targets = true, and not with reduction = \"mean\"");
  }
  if (const auto auxiliary = place.find("auxiliary"))
    loss.auxiliary = static_cast<reference::AuxiliaryLosses>(auxiliary->one_of(reference::kAuxiliaryWords));
  for (const auto& [key, given] :
       {std::pair{"ignores_targets", loss.ignores_targets}, std::pair{"class_weights", loss.class_weights}})
    if (given && loss.kind != reference::LossKind::CrossEntropy)
      place.refuse(std::string(key) + " goes with kind = \"cross-entropy\"");
  if (loss.parameters && loss.kind == reference::LossKind::Output)
    place.refuse("parameters goes with another kind than \"output\", which the model computes");
  if (loss.equal_weights && loss.reduction != reference::Reduction::Mean)
    place.refuse("equal_weights goes with reduction = \"mean\"");
  if (loss.reduction == reference::Reduction::BatchMean && loss.kind != reference::LossKind::Mse &&
      loss.kind != reference::LossKind::CrossEntropy)
    place.refuse("reduction = \"batch-mean\" goes with kind = \"mse\" or \"cross-entropy\", which have a target");
  return loss;
}

reference::Step step_of(const TomlPlace& place, int microbatches) {
  if (!place.node().is_table()) {
    const auto kind = static_cast<StepKind>(place.one_of(reference::kStepWords));
    if (kind == StepKind::Freeze || kind == StepKind::Unfreeze)
      place.fail("a table, such as {kind = \"freeze\", parameters = \"layers.[34].*\"}");
    return kind;
  }
  reference::Step step = static_cast<StepKind>(place["kind"].one_of(reference::kStepWords));
  switch (step.kind) {
    case StepKind::Train:
    case StepKind::Eval:
      if (step.kind == StepKind::Train)
        place.expect_only({"kind", "rows"});
      else
        place.expect_only({"kind", "rows", "target"});
      if (const auto rows = place.find("rows")) step.rows = rows->small(microbatches, kMostRows);
      if (const auto target = place.find("target")) step.has_target = target->boolean();
      break;
    case StepKind::Freeze:
    case StepKind::Unfreeze:
      place.expect_only({"kind", "parameters"});
      step.parameters = place["parameters"].text();
      break;
    default:
      place.expect_only({"kind"});
  }
  return step;
}

std::vector<reference::Step> listed_steps(const TomlPlace& steps, int microbatches) {
  std::vector<reference::Step> listed;
  for (const TomlPlace& place : steps.items()) listed.push_back(step_of(place, microbatches));
  if (std::ranges::none_of(listed, [](const auto& step) { return step == StepKind::Train || step == StepKind::Eval; }))
    steps.refuse("none is \"train\" or \"eval\"");
  return listed;
}

std::vector<reference::Step> steps_of(const TomlPlace& of_case, int microbatches) {
  std::vector<reference::Step> once = reference::Case().steps, all;
  if (const auto steps = of_case.find("steps")) once = listed_steps(*steps, microbatches);
  const auto repeat = of_case.find("repeat_steps");
  for (int i = repeat ? repeat->small(1, 1000) : 1; i > 0; --i) all.insert(all.end(), once.begin(), once.end());
  return all;
}

reference::OptimizerSpec optimizer_of(const TomlPlace& place) {
  reference::OptimizerSpec optimizer;
  optimizer.kind = static_cast<reference::OptimizerKind>(place["kind"].one_of(reference::kOptimizerWords));
  if (optimizer.kind == reference::OptimizerKind::Sgd)
    place.expect_only({"kind", "learning_rate", "momentum", "weight_decay", "clip_norm", "clip_epsilon", "norm",
                       "skip_nonfinite", "loss_scale"});
  else
    place.expect_only({"kind", "learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "clip_norm",
                       "clip_epsilon", "norm", "skip_nonfinite", "loss_scale"});
  optimizer.learning_rate = place["learning_rate"].not_negative();
  for (const auto& [key, member] :
       {std::pair{"momentum", &reference::OptimizerSpec::momentum},
        std::pair{"beta1", &reference::OptimizerSpec::beta1}, std::pair{"beta2", &reference::OptimizerSpec::beta2},
        std::pair{"epsilon", &reference::OptimizerSpec::epsilon},
        std::pair{"weight_decay", &reference::OptimizerSpec::weight_decay},
        std::pair{"clip_norm", &reference::OptimizerSpec::clip_norm},
        std::pair{"clip_epsilon", &reference::OptimizerSpec::clip_epsilon},
        std::pair{"loss_scale", &reference::OptimizerSpec::loss_scale}})
    if (const auto value = place.find(key)) optimizer.*member = value->not_negative();
  if (const auto norm = place.find("norm"))
    optimizer.norm = static_cast<reference::NormKind>(norm->one_of(reference::kNormWords));
  if (const auto skips = place.find("skip_nonfinite")) optimizer.skip_nonfinite = skips->boolean();
  for (const char* key : {"norm", "clip_epsilon"})
    if (const auto value = place.find(key); value && optimizer.clip_norm == 0)
      value->refuse("goes with a clip_norm that is not 0");
  if (optimizer.loss_scale == 0) place["loss_scale"].refuse("expected a factor that is not 0");
  return optimizer;
}

/// The CSV that `place` names in the table [schedules].
std::string schedule_of(const TomlPlace& place, const std::optional<TomlPlace>& schedules, const reference::Case& c) {
  std::vector<std::string> names;
  if (schedules)
    for (const auto& [key, value] : schedules->members()) names.push_back(key);
  if (names.empty()) place.refuse("the file has no table [schedules]");
  const std::string name = names[place.one_of(names)];
  const TomlPlace text = (*schedules)[name];
  std::string csv = text.text();
  csv.erase(csv.find_last_not_of(" \t\r\n") + 1);
  csv += '\n';  // each row is a line, and no other
  const bool trains = has_step(c.steps, StepKind::Train);
  int microbatches = 0, replicas = 0;
  try {
    const schedule::Schedule schedule = schedule::parse_csv(csv, "CSV");
    schedule::require_valid(schedule, schedule::chain_edges(schedule.stages), {.forward_only = !trains});
    microbatches = schedule.microbatches;
    replicas = schedule.replicas();
  } catch (const InputError& error) {
    text.refuse(error.what());
  }
  if (microbatches != c.microbatches)
    place.refuse("'" + name + "' is for " + std::to_string(microbatches) + " micro-batches, the case has " +
                 std::to_string(c.microbatches));
  if (replicas % c.replicas != 0)
    place.refuse("'" + name + "' has " + std::to_string(replicas) + " replicas of the model, the case has " +
                 std::to_string(c.replicas) + " of the pipeline");
  return csv;
}

/// Whether an update adds multiples of whole numbers. A power of two as the scale of losses rounds nothing.
bool has_whole_numbers(const reference::OptimizerSpec& spec) {
  const auto whole = [](double number) { return std::nearbyint(number) == number; };
  int exponent;
  const bool is_power = std::frexp(spec.loss_scale, &exponent) == 0.5 && exponent >= 1;
  return spec.kind == reference::OptimizerKind::Sgd && spec.clip_norm == 0 && is_power && whole(spec.learning_rate) &&
         whole(spec.momentum) && whole(spec.weight_decay);
}

/// Whether a train step follows another one without a zero_grad between them.
bool accumulates(const std::vector<reference::Step>& steps) {
  bool trained = false;
  for (const reference::Step& step : steps) {
    if (step == StepKind::Train && std::exchange(trained, true)) return true;
    if (step == StepKind::ZeroGrad) trained = false;
  }
  return false;
}

/// Whether an optimizer step comes before any train step, when no parameter has a gradient.
bool updates_at_once(const std::vector<reference::Step>& steps) {
  const auto first = std::ranges::find_if(
      steps, [](const auto& step) { return step == StepKind::Train || step == StepKind::Optimizer; });
  return first != steps.end() && *first == StepKind::Optimizer;
}

/// Refuses fields that contradict each other.
void check(const TomlPlace& place, const reference::Case& c) {
  if (c.loss.ignored_rows >= least_rows(c))
    place.refuse("loss.ignored_rows = " + std::to_string(c.loss.ignored_rows) + " ignores all targets of a batch of " +
                 std::to_string(least_rows(c)) + " rows; expected fewer");
  if (c.rows < c.microbatches)
    place.refuse(std::to_string(c.rows) + " rows are too few for " + std::to_string(c.microbatches) +
                 " micro-batches; expected at least one for each");
  if (c.truth == reference::Truth::Exact && !models::is_exact_model(c.model))
    place["truth"].refuse("the data of '" + c.model +
                          "' are no whole numbers; expected same-order or bounded, or a model exact-...");
  if (c.truth == reference::Truth::Bounded && c.dtype == reference::Dtype::F64)
    place["truth"].refuse(
        "nothing is more exact than f64, to bound its results; expected same-order, or another dtype");
  if (c.truth == reference::Truth::Bounded && models::is_exact_model(c.model))
    place["truth"].refuse("the whole numbers of '" + c.model +
                          "' may lie at the kink of a function, where rounding has no bound; expected exact or "
                          "same-order, or another model");
  const bool updates = has_step(c.steps, StepKind::Optimizer), resumes = !c.steps_before.empty();
  const bool optimizes = updates || has_step(c.steps_before, StepKind::Optimizer);
  if (optimizes && !place.find("optimizer")) place["steps"].refuse("\"optimizer\" needs the key 'optimizer'");
  if (!optimizes && place.find("optimizer")) place["optimizer"].refuse("goes with a step \"optimizer\"");
  for (const auto& [key, steps] : {std::pair{"steps", &c.steps}, std::pair{"steps_before", &c.steps_before}})
    if (updates_at_once(*steps))
      place[key].refuse("no parameter has a gradient at the first \"optimizer\"; expected a \"train\" before it");
  if (c.saves_optimizer && !updates) place["saves_optimizer"].refuse("goes with a step \"optimizer\"");
  if (resumes && !has_step(c.steps_before, StepKind::Optimizer))
    place["steps_before"].refuse("none is \"optimizer\": nothing would be saved");
  for (const auto& [key, given] : {std::pair{"gradient_microbatches", !c.gradient_microbatches.empty()},
                                   std::pair{"whole_gradients", c.whole_gradients}})
    if (given && !c.input_gradients) place[key].refuse("goes with input_gradients = true");
  if (c.whole_gradients && (c.divided || !c.gradient_microbatches.empty()))
    place["whole_gradients"].refuse(
        "goes with inputs that are given whole; divided and gradient_microbatches divide them");
  if (c.whole_gradients && c.truth == reference::Truth::SameOrder)
    place["whole_gradients"].refuse(
        "the order of the sum over micro-batches is free; expected truth = \"bounded\", or a model exact-...");
  if (c.whole_gradients && c.replicas > 1)
    place["whole_gradients"].refuse("each of several replicas has the gradients of its own micro-batches");
  if (c.divided && c.loss.reduction == reference::Reduction::BatchMean)
    place["loss"].refuse("reduction = \"batch-mean\" goes with a batch that is given whole");
  const bool evaluates = has_step(c.steps, StepKind::Eval) || has_step(c.steps_before, StepKind::Eval);
  if (c.loss.parameters && evaluates && has_feature(c, "early-exits"))
    place["loss"].refuse("parameters goes with a model whose evaluations all end in the last stage, which has them");
  if (optimizes && c.truth == reference::Truth::Exact && !has_whole_numbers(c.optimizer))
    place["optimizer"].refuse(
        "its numbers are no whole numbers; expected truth same-order or bounded, or sgd without clipping, whose "
        "learning_rate, momentum and weight_decay are whole numbers, with a power of two as loss_scale");
  if (c.weight_closures && (c.parameter_hooks || c.accumulation_hooks))
    place["weight_closures"].refuse("goes without hooks on parameters, which these gradients do not pass");
  if (c.accumulation_hooks && c.parameter_hooks)
    place["accumulation_hooks"].refuse("goes without parameter_hooks: both count under the names of the parameters");
  if (c.accumulation_hooks && (accumulates(c.steps) || resumes))
    place["accumulation_hooks"].refuse("expected a \"zero_grad\" between two steps \"train\"");
}

reference::Case case_of(const TomlPlace& place, const std::optional<TomlPlace>& schedules) {
  place.expect_only(kCaseKeys);
  reference::Case c;
  c.id = id_of(place["id"]);
  c.title = one_line_of(place["title"]);
  c.why = one_line_of(place["why"]);
  c.model = models::model_names()[place["model"].one_of(models::model_names())];
  c.truth = models::is_exact_model(c.model) ? reference::Truth::Exact : reference::Truth::SameOrder;
  if (const auto truth = place.find("truth"))
    c.truth = static_cast<reference::Truth>(truth->one_of(reference::kTruthWords));
  if (const auto dtype = place.find("dtype"))
    c.dtype = static_cast<reference::Dtype>(dtype->one_of(reference::kDtypeWords));
  if (const auto rows = place.find("rows")) c.rows = rows->small(1, kMostRows);
  if (const auto microbatches = place.find("microbatches")) c.microbatches = microbatches->small(1, kMostRows);
  c.loss = loss_of(place["loss"]);
  if (const auto divides = place.find("divides"))
    c.division = static_cast<reference::Division>(divides->one_of(reference::kDivisionWords));
  c.steps = steps_of(place, c.microbatches);
  if (const auto before = place.find("steps_before")) c.steps_before = listed_steps(*before, c.microbatches);
  if (const auto optimizer = place.find("optimizer")) c.optimizer = optimizer_of(*optimizer);
  for (const auto& [key, member] :
       {std::pair{"input_gradients", &reference::Case::input_gradients},
        std::pair{"whole_gradients", &reference::Case::whole_gradients},
        std::pair{"divided", &reference::Case::divided}, std::pair{"keyword_inputs", &reference::Case::keyword_inputs},
        std::pair{"parameter_hooks", &reference::Case::parameter_hooks},
        std::pair{"boundary_hooks", &reference::Case::boundary_hooks},
        std::pair{"accumulation_hooks", &reference::Case::accumulation_hooks},
        std::pair{"weight_closures", &reference::Case::weight_closures},
        std::pair{"saves_optimizer", &reference::Case::saves_optimizer}})
    if (const auto value = place.find(key)) c.*member = value->boolean();
  if (const auto some = place.find("gradient_microbatches"))
    for (const TomlPlace& microbatch : some->items())
      c.gradient_microbatches.push_back(microbatch.small(0, c.microbatches - 1));
  if (const auto recompute = place.find("recompute"))
    c.recompute = engine::kRecomputeWords.at(recompute->one_of(engine::kRecomputeWords));
  if (const auto named = place.find("features")) {
    std::vector<std::string> known;
    for (const Feature& feature : features()) known.push_back(feature.name);
    for (const TomlPlace& feature : named->items()) c.features.push_back(known[feature.one_of(known)]);
  }
  if (const auto replicas = place.find("replicas")) {
    c.replicas = replicas->small(2, kMostRows);
    if (c.microbatches % c.replicas != 0)
      replicas->refuse("its " + std::to_string(c.microbatches) + " micro-batches cannot be divided evenly");
  }
  if (const auto shards = place.find("shards_parameters")) {
    c.shards_parameters = shards->boolean();
    if (c.shards_parameters && c.replicas == 1) shards->refuse("goes with replicas = 2 or more");
  }
  if (const auto data = place.find("data")) c.data = data->small(1, kMostRows);
  check(place, c);
  if (const auto schedule = place.find("schedule")) c.schedule_csv = schedule_of(*schedule, schedules, c);
  return c;
}

}  // namespace

void CaseFiles::read(const std::string& text, const std::string& file) {
  const toml::table document = parse_toml(text, file);
  const TomlPlace root(file, document);
  root.expect_only({"schema", "schedules", "case"});
  root.expect_schema(kSchema);
  const std::optional<TomlPlace> schedules = root.find("schedules");
  if (schedules && !schedules->node().is_table()) schedules->fail("a table of CSVs: [schedules]");
  for (const TomlPlace& place : root["case"].items()) {
    reference::Case c = case_of(place, schedules);
    const TomlPlace id = place["id"];
    const auto [taken, is_new] = places_.try_emplace(c.id, id.where());
    if (!is_new) id.refuse("'" + c.id + "' is taken, at " + taken->second + "; expected an id that no case has");
    cases_.push_back(std::move(c));
  }
}

std::vector<std::filesystem::path> case_files(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  if (error) throw InputError("--corpus: folder '" + folder.string() + "' cannot be read (" + error.message() + ")");
  if (files.empty()) throw InputError("--corpus: folder '" + folder.string() + "' has no file *.toml");
  std::ranges::sort(files);
  return files;
}

}  // namespace plumbline::conformance
