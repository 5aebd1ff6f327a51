#include "conformance/corpus/features.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/error.h"

namespace plumbline::conformance {
namespace {

/// The features of a model, by its name without "exact-".
const std::map<std::string, std::vector<std::string>, std::less<>>& features_of_models() {
  static const std::map<std::string, std::vector<std::string>, std::less<>> models = {
      {"absent-value", {"mlp", "none", "skips", "several-values"}},
      {"aliases", {"mlp", "views", "skips"}},
      {"attention", {"transformer"}},
      {"attention-lengths", {"transformer", "other-lengths"}},
      {"autocast", {"mlp", "mixed"}},
      {"auxiliary", {"mlp", "scalars", "several-values"}},
      {"balanced", {"mlp", "scalars", "several-values"}},
      {"begins-in-place", {"mlp", "in-place"}},
      {"begins-turned", {"mlp", "views"}},
      {"begins-with-expand", {"mlp", "views"}},
      {"begins-with-sum", {"mlp", "views"}},
      {"begins-with-row", {"mlp"}},
      {"begins-with-view", {"mlp", "views"}},
      {"branch", {"mlp", "skips", "several-values"}},
      {"columns", {"mlp", "other-dimension", "views"}},
      {"common-factor", {"mlp", "shared"}},
      {"complex", {"mlp", "complex", "skips", "several-values"}},
      {"composed-weights", {"mlp", "shared"}},
      {"conjugated", {"mlp", "complex", "views", "skips", "several-values"}},
      {"constants", {"mlp", "skips"}},
      {"convolution", {"convolution", "buffers"}},
      {"dict", {"mlp", "dicts", "none", "several-values", "unused"}},
      {"dict-loss", {"mlp", "dicts", "loss-inside", "late-input", "scalars", "several-values"}},
      {"dimensions", {"mlp", "other-dimension", "replicated", "late-input", "several-values", "views"}},
      {"early-exit", {"mlp", "skips", "other-lengths", "early-exits"}},
      {"either-mask", {"mlp", "none", "late-input", "several-values"}},
      {"encoder-decoder", {"encoder-decoder", "other-dimension", "skips", "late-input", "several-values"}},
      {"encoder-decoder-lengths",
       {"encoder-decoder", "other-dimension", "skips", "late-input", "several-values", "other-lengths"}},
      {"experts", {"experts"}},
      {"flat-parameters", {"mlp"}},
      {"frozen", {"mlp", "frozen"}},
      {"frozen-first", {"mlp", "frozen"}},
      {"frozen-last", {"mlp", "frozen"}},
      {"frozen-weights", {"mlp", "frozen"}},
      {"heads", {"mlp", "dicts", "several-targets", "skips", "several-values"}},
      {"hooked", {"mlp", "hooks"}},
      {"host-numbers", {"mlp", "not-tensors"}},
      {"idle", {"mlp", "unused"}},
      {"late-buffer", {"mlp", "buffers", "skips"}},
      {"late-input", {"mlp", "late-input", "replicated", "several-values"}},
      {"late-mask", {"mlp", "none", "late-input", "several-values"}},
      {"late-write", {"mlp", "in-place", "skips", "several-values"}},
      {"leading-mask", {"mlp", "none", "late-input", "several-values"}},
      {"lopsided", {"mlp", "stage-sizes", "views"}},
      {"lengths", {"recurrent", "other-lengths"}},
      {"loss-inside", {"mlp", "loss-inside", "late-input", "scalars"}},
      {"loss-read", {"mlp", "loss-inside", "late-input", "scalars"}},
      {"loss-view", {"mlp", "loss-inside", "views", "scalars"}},
      {"lstm", {"recurrent"}},
      {"masked", {"mlp", "skips", "late-input"}},
      {"mixed-bf16", {"mlp", "mixed"}},
      {"mixed-double", {"mlp", "mixed"}},
      {"mixed-half", {"mlp", "mixed"}},
      {"mlp", {"mlp"}},
      {"mlp-dropout", {"mlp", "random"}},
      {"mlp-frozen", {"mlp", "frozen"}},
      {"multi-io", {"mlp", "several-values", "integers", "replicated", "other-dimension", "unused", "late-input"}},
      {"noise", {"mlp", "random"}},
      {"none", {"mlp", "none", "several-values"}},
      {"optional-mask", {"mlp", "none", "late-input", "several-values"}},
      {"parameter-output", {"mlp", "passed-through", "several-values"}},
      {"passed-through", {"mlp", "views", "passed-through", "several-values"}},
      {"polynomial", {"mlp"}},
      {"polynomial-shared", {"mlp", "shared", "skips"}},
      {"read-by-all", {"mlp", "skips"}},
      {"reads-buffer", {"mlp", "buffers"}},
      {"recurrent", {"recurrent"}},
      {"relu", {"mlp"}},
      {"resnet-bn", {"convolution", "buffers"}},
      {"scalar", {"mlp", "scalars", "unused", "skips"}},
      {"shared-dropout", {"mlp", "shared", "random"}},
      {"shared-detached", {"mlp", "shared"}},
      {"shared-ends", {"mlp", "shared"}},
      {"shared-everywhere", {"mlp", "shared"}},
      {"shared-frozen", {"mlp", "shared", "frozen"}},
      {"shared-neighbours", {"mlp", "shared"}},
      {"shared-parts", {"mlp", "shared"}},
      {"shared-places", {"mlp", "shared"}},
      {"shared-summand", {"mlp"}},
      {"shared-three", {"mlp", "shared"}},
      {"shared-transposed", {"mlp", "shared", "views"}},
      {"shared-within", {"mlp", "shared"}},
      {"skip", {"mlp", "skips"}},
      {"small-numbers", {"mlp", "integers", "skips", "several-values"}},
      {"spiked", {"mlp", "several-values", "late-input"}},
      {"split-twice", {"mlp", "stage-sizes", "shared"}},
      {"stash", {"mlp", "skips"}},
      {"strided-gradients", {"mlp", "skips", "views"}},
      {"summed-weights", {"mlp"}},
      {"summed-views", {"mlp", "views", "skips", "unused"}},
      {"temperature", {"mlp"}},
      {"tied", {"mlp", "shared", "integers"}},
      {"transformer-lm", {"transformer", "shared", "integers"}},
      {"transformer-mixed", {"transformer", "shared", "integers", "mixed"}},
      {"twin-skips", {"mlp", "skips"}},
      {"two-autocasts", {"mlp", "mixed"}},
      {"two-heads", {"mlp", "several-targets", "skips", "several-values"}},
      {"unet", {"u-net", "convolution", "skips"}},
      {"unet-stash", {"u-net", "convolution", "skips"}},
      {"unused-inputs", {"mlp", "unused", "several-values"}},
      {"unused-parameters", {"mlp", "unused"}},
      {"views", {"mlp", "views", "skips"}},
      {"wide", {"mlp", "skips"}},
  };
  return models;
}

void add_of_loss(const reference::Case& c, std::set<std::string>& found) {
  found.insert(c.loss.reduction == reference::Reduction::Sum ? "sum" : "mean");
  if (c.loss.reduction == reference::Reduction::BatchMean) found.insert("batch-mean");
  if (c.loss.class_weights) found.insert("class-weights");
  if (c.loss.equal_weights) found.insert("mean-of-means");
  if (c.loss.parameters) found.insert("loss-parameters");
  if (c.loss.auxiliary == reference::AuxiliaryLosses::Added) found.insert("added-losses");
  if (c.loss.auxiliary == reference::AuxiliaryLosses::InPlace) found.insert("local-losses");
  if (c.loss.ignores_targets) found.insert("ignored-targets");
}

void add_of_microbatches(const reference::Case& c, std::set<std::string>& found) {
  if (c.microbatches == 1) found.insert("one-microbatch");
  if (c.microbatches == 2 || c.microbatches == 3) found.insert("few-microbatches");
  if (c.microbatches > 4) found.insert("many-microbatches");
  if (c.rows % c.microbatches != 0) found.insert("uneven");
  if (c.division == reference::Division::Nobody) found.insert("undivided");
  if (c.division == reference::Division::User) found.insert("divided-by-user");
}

void add_of_steps(const reference::Case& c, std::set<std::string>& found) {
  int trained = 0;
  bool optimizes = false;
  for (const reference::Step& step : c.steps) {
    trained += step == reference::StepKind::Train;
    optimizes = optimizes || step == reference::StepKind::Optimizer;
    if (step == reference::StepKind::Eval) found.insert("evaluation");
    if (step == reference::StepKind::Freeze || step == reference::StepKind::Unfreeze) found.insert("freezing");
    if (step.rows != 0) found.insert("other-rows");
  }
  if (optimizes) found.insert("optimizer");
  if (c.optimizer.clip_norm != 0) found.insert("clipping");
  if (c.optimizer.loss_scale != 1) found.insert("loss-scaling");
  if (c.optimizer.skip_nonfinite) found.insert("skipped-steps");
  if (!c.steps_before.empty()) found.insert("resumed");
  if (c.saves_optimizer) found.insert("saved");
  if (trained > 1 && !optimizes) found.insert("accumulation");
}

}  // namespace

const std::vector<Feature>& features() {
  static const std::vector<Feature> all = {
      {"exact", "whole numbers, proven exact"},
      {"same-order", "bitwise equal to the stages run in the schedule's order"},
      {"bounded", "within an error bound of float64"},
      {"mlp", "chains of layers"},
      {"transformer", "attention"},
      {"encoder-decoder", "an encoder whose result every part of a decoder reads"},
      {"convolution", "convolutions, with batch statistics"},
      {"u-net", "down and up again, with nested skips"},
      {"experts", "mixtures of experts"},
      {"recurrent", "layers with a state over time"},
      {"stage-sizes", "stages of very different sizes, some without parameters"},
      {"shared", "parameters that are used several times"},
      {"skips", "values that pass over stages"},
      {"several-values", "several inputs or outputs"},
      {"integers", "integers or booleans at stage boundaries"},
      {"complex", "complex numbers between stages"},
      {"none", "None among inputs and outputs, and between stages"},
      {"dicts", "outputs in a dict"},
      {"not-tensors", "numbers that are not tensors"},
      {"views", "views and aliases"},
      {"in-place", "stages that begin with an in-place change"},
      {"scalars", "scalars at stage boundaries and as outputs"},
      {"passed-through", "inputs and parameters that are outputs"},
      {"late-input", "inputs that a later stage is the first to use"},
      {"keywords", "inputs passed by keyword"},
      {"one-microbatch", "one micro-batch"},
      {"few-microbatches", "two or three micro-batches"},
      {"many-microbatches", "more than four micro-batches"},
      {"uneven", "micro-batches of several sizes"},
      {"divided", "micro-batches that the user divides, with sequences of several lengths"},
      {"other-dimension", "inputs divided along another dimension"},
      {"replicated", "inputs that each micro-batch gets whole"},
      {"sum", "a loss that is a sum"},
      {"mean", "a loss that is a mean"},
      {"batch-mean", "a loss divided by the number of elements of the whole batch"},
      {"mean-of-means", "micro-batches of several sizes that weigh the same"},
      {"class-weights", "a mean weighted by class"},
      {"ignored-targets", "targets that the loss ignores"},
      {"several-targets", "a nested structure of targets, one for each of several outputs"},
      {"added-losses", "auxiliary losses of early stages, added to the last stage's loss"},
      {"local-losses", "auxiliary losses that stay in the stages that make them"},
      {"loss-inside", "a loss that the model computes"},
      {"loss-parameters", "a loss function with parameters of its own"},
      {"undivided", "gradients not divided by the number of micro-batches"},
      {"divided-by-user", "losses that the user divides by the number of micro-batches"},
      {"f64", "float64"},
      {"f32", "float32"},
      {"bf16", "bfloat16"},
      {"f16", "float16"},
      {"mixed", "several dtypes in one model"},
      {"random", "dropout and other random numbers"},
      {"buffers", "buffers that a forward writes"},
      {"frozen", "frozen parameters"},
      {"unused", "parameters, values and inputs without a use"},
      {"input-gradients", "gradients of the inputs"},
      {"whole-gradients", "gradients of inputs, read from the tensor that was given for the whole batch"},
      {"some-gradients", "inputs that require gradients in some micro-batches only"},
      {"hooks", "users' hooks on parameters and on values between stages"},
      {"weight-closures", "layers that compute the gradients of their parameters apart from autograd"},
      {"accumulation", "several train steps that add up"},
      {"evaluation", "evaluation steps, also between train steps"},
      {"other-rows", "steps with batches of another size"},
      {"other-lengths", "sequences of another length in each step"},
      {"early-exits", "evaluations in which some micro-batches leave the pipeline at an early stage"},
      {"freezing", "freezing and unfreezing between steps"},
      {"optimizer", "updates of parameters"},
      {"clipping", "gradients clipped by their norm over all stages"},
      {"loss-scaling", "losses scaled before the backward, gradients scaled back before the update"},
      {"skipped-steps", "updates skipped everywhere because a gradient of one stage is not finite"},
      {"saved", "the optimizer's state under canonical names, as a checkpoint has it"},
      {"resumed", "training that continues from the state that another run saved"},
      {"recompute", "stages recomputed in their backward"},
      {"replicas", "data-parallel replicas of the pipeline, whose gradients are summed"},
      {"sharded", "parameters divided among the replicas between their uses"},
      {"own-schedule", "a schedule built into the case"},
      {"offload", "activations that leave the memory between forward and backward, as the case's schedule says"},
  };
  return all;
}

std::vector<std::string> features_of(const reference::Case& c) {
  std::set<std::string> found(c.features.begin(), c.features.end());
  const std::string_view model = c.model;
  const auto of_model = features_of_models().find(model.starts_with("exact-") ? model.substr(6) : model);
  if (of_model != features_of_models().end()) found.insert(of_model->second.begin(), of_model->second.end());
  found.insert(std::string(to_string(c.truth)));
  found.insert(std::string(to_string(c.dtype)));
  add_of_loss(c, found);
  add_of_microbatches(c, found);
  add_of_steps(c, found);
  if (c.input_gradients) found.insert("input-gradients");
  if (c.parameter_hooks || c.boundary_hooks || c.accumulation_hooks) found.insert("hooks");
  if (c.weight_closures) found.insert("weight-closures");
  if (c.whole_gradients) found.insert("whole-gradients");
  if (!c.gradient_microbatches.empty()) found.insert("some-gradients");
  if (c.divided) found.insert("divided");
  if (c.keyword_inputs) found.insert("keywords");
  if (c.recompute != "never") found.insert("recompute");
  if (c.replicas > 1) found.insert("replicas");
  if (c.shards_parameters) found.insert("sharded");
  if (!c.schedule_csv.empty()) found.insert("own-schedule");
  if (c.schedule_csv.find("OFFLOAD") != std::string::npos) found.insert("offload");
  std::vector<std::string> in_order;
  for (const Feature& feature : features())
    if (found.erase(feature.name)) in_order.push_back(feature.name);
  PLUMBLINE_CHECK(found.empty(), "case " + c.id + " has a feature without a name");
  return in_order;
}

bool has_feature(const reference::Case& c, std::string_view name) {
  const std::vector<std::string> all = features_of(c);
  return std::find(all.begin(), all.end(), name) != all.end();
}

}  // namespace plumbline::conformance
