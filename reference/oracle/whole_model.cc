#include "reference/oracle/whole_model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/div.h>
#include <ATen/ops/full_like.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/module.h>

#include "reference/hooks.h"
#include "reference/loss.h"
#include "reference/oracle/case_run.h"
#include "reference/oracle/gradient_norm.h"
#include "reference/oracle/microbatches.h"
#include "reference/oracle/precision.h"
#include "reference/sum_of.h"
#include "runtime/capture/call.h"
#include "runtime/microbatch/random_seed.h"

namespace plumbline::reference {
namespace {

/// Seeds the default generator when forward reaches the beginning of a stage.
class StageSeeder : public capture::ModuleObserver {
 public:
  StageSeeder(const torch::nn::Module& root, const std::vector<split::SplitPoint>& points) {
    int stage = 0;
    for (const split::SplitPoint& point : points) {
      ++stage;
      auto& begins = point.where == split::SplitPoint::Where::Beginning ? begins_before_ : begins_after_;
      for (const auto& item : root.named_modules())
        if (item.key() == point.module) begins[item.value().get()] = stage;
    }
  }
  void begin(uint64_t seed, int64_t step, int microbatch) {
    seed_ = seed, step_ = step, microbatch_ = microbatch;
    seed_stage(0);
  }
  void enter(const torch::nn::Module& module) override { seed_where(begins_before_, module); }
  void leave(const torch::nn::Module& module) override { seed_where(begins_after_, module); }

 private:
  using Stages = std::map<const torch::nn::Module*, int>;

  void seed_where(const Stages& begins, const torch::nn::Module& module) {
    if (const auto it = begins.find(&module); it != begins.end()) seed_stage(it->second);
  }
  void seed_stage(int stage) {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(microbatch::stage_random_seed(seed_, step_, stage, microbatch_));
  }

  Stages begins_before_, begins_after_;  ///< the module before or after whose call a stage begins
  uint64_t seed_ = 0;
  int64_t step_ = 0;
  int microbatch_ = 0;
};

class WholeModel : public CaseSubject {
 public:
  WholeModel(const Case& c, uint64_t seed, const WholeModelOptions& options, const SavedState& begin, Results& results)
      : case_(c),
        seed_(seed),
        options_(options),
        model_(model_of(c, seed, begin)),
        seeder_(*model_.module, models::stage_points(model_, options.stages)),
        results_(results) {
    const c10::NoGradGuard no_grad;
    convert(*model_.module, options.dtype);
    if (options.absolute_values)
      for (at::Tensor& parameter : model_.module->parameters()) parameter.copy_(parameter.abs());
    if (c.parameter_hooks)
      for (const auto& [name, parameter] : parameters()) hooks_.add(name, parameter);
  }

  void train(int step, const models::Batch& batch) override {
    model_.module->train();
    const models::Batch given = given_batch(batch, /*training=*/true);
    const std::vector<models::Batch> chunks = chunks_of(given, /*training=*/true);
    const double divisor = loss_divisor(case_, batch.targets);
    // Completes this step's gradients before adding them to the earlier ones.
    const std::vector<at::Tensor> before = take_gradients();
    std::vector<at::Tensor> sums(before.size());
    for (size_t m = 0; m < chunks.size(); ++m) {
      std::vector<at::Tensor> losses = forward(step, static_cast<int>(m), chunks[m], divisor);
      std::erase_if(losses, [](const at::Tensor& loss) { return !loss.requires_grad(); });
      if (losses.empty()) continue;
      std::vector<at::Tensor> weights;
      for (const at::Tensor& loss : losses)
        weights.push_back(at::full_like(loss, loss_weight(case_, model_, chunks[m], batch)));
      torch::autograd::backward(losses, weights);
      if (options_.by_microbatch && keeps_details(case_) && !case_.whole_gradients)
        put_input_gradients(step, static_cast<int>(m), chunks[m]);
      const std::vector<at::Tensor> gradients = take_gradients();
      for (size_t i = 0; i < sums.size(); ++i) sums[i] = sum_of(sums[i], gradients[i]);
    }
    ++train_steps_;
    if (case_.whole_gradients && keeps_details(case_)) put_input_gradients(step, -1, given);
    const c10::NoGradGuard no_grad;
    const NamedTensors all = parameters();
    for (size_t i = 0; i < all.size(); ++i) {
      if (sums[i].defined() && case_.division == Division::Engine) sums[i] = sums[i] / case_.microbatches;
      all[i].second.mutable_grad() = sum_of(before[i], sums[i]);
    }
  }

  void evaluate(int step, const models::Batch& batch) override {
    model_.module->eval();
    const c10::NoGradGuard no_grad;
    const std::vector<models::Batch> chunks = chunks_of(given_batch(batch, /*training=*/false), /*training=*/false);
    const double divisor = loss_divisor(case_, batch.targets);
    for (size_t m = 0; m < chunks.size(); ++m) forward(step, static_cast<int>(m), chunks[m], divisor);
  }

  void zero_grad() override {
    for (const at::Tensor& parameter : model_.module->parameters()) parameter.mutable_grad() = at::Tensor();
  }

  void set_trainable(const std::string& pattern, bool trainable) override {
    plumbline::reference::set_trainable(parameters(), pattern, trainable);
  }

  NamedTensors parameters() const override { return first_names(model_.module->named_parameters()); }
  NamedTensors buffers() const override { return first_names(model_.module->named_buffers()); }
  double gradient_norm(NormKind kind) const override {
    return plumbline::reference::gradient_norm(parameters(), kind, case_.dtype);
  }

 private:
  /// Autograd's gradients, taken after every micro-batch, so that autograd itself never accumulates (sum_of.h).
  std::vector<at::Tensor> take_gradients() {
    std::vector<at::Tensor> gradients;
    for (const auto& [name, parameter] : parameters()) {
      gradients.push_back(parameter.grad());
      parameter.mutable_grad() = at::Tensor();
    }
    return gradients;
  }

  at::Tensor cast(const at::Tensor& tensor, bool is_target) const {
    if (!tensor.defined() || !tensor.is_floating_point()) return tensor;
    const Unobserved unobserved;
    const at::Tensor out = converted(tensor, options_.dtype);
    if (!options_.absolute_values) return out;
    return is_target ? -out.abs() : out.abs();
  }

  models::Batch cast(const models::Batch& batch) const {
    models::Batch out;
    for (const at::Tensor& input : batch.inputs) out.inputs.push_back(cast(input, /*is_target=*/false));
    out.targets = batch.targets.map([&](const at::Tensor& target) { return cast(target, /*is_target=*/true); });
    for (const models::Batch& part : batch.parts) out.parts.push_back(cast(part));
    return out;
  }

  /// As the user gives it.
  models::Batch given_batch(const models::Batch& batch, bool training) const {
    return training && case_.whole_gradients ? with_leaves(cast(batch)) : cast(batch);
  }

  std::vector<models::Batch> chunks_of(const models::Batch& given, bool training) const {
    // A mean of means is no function of the whole batch, and micro-batches of other lengths make no batch.
    const bool divides = options_.by_microbatch || case_.loss.equal_weights || case_.divided;
    return divide(case_, model_, given, divides ? case_.microbatches : 1, training);
  }

  /// Returns the losses: that of the outputs, and the auxiliary ones that are not added to it.
  std::vector<at::Tensor> forward(int step, int microbatch, const models::Batch& chunk, double divisor) {
    seeder_.begin(seed_, train_steps_, microbatch);
    std::vector<at::Tensor> outputs;
    {
      const capture::ModuleObserverScope observing(&seeder_);
      outputs = model_.forward(chunk.inputs);
    }
    std::vector<at::Tensor> losses;
    const auto add_loss = [&](const std::string& name, const at::Tensor& loss) {
      losses.push_back(loss);
      if (options_.by_microbatch) put(results_, {step, ResultKind::Loss, -1, microbatch, name}, loss);
    };
    if (has_loss(case_.loss, chunk.targets))
      add_loss("loss", compute_loss(case_.loss, outputs, chunk.targets, divisor, model_.loss_parameters));
    const size_t local = case_.loss.auxiliary == AuxiliaryLosses::InPlace ? model_.auxiliary_losses : 0;
    for (size_t i = outputs.size() - local; i < outputs.size(); ++i)
      if (outputs[i].defined())
        add_loss(models::output_name(model_, i), divisor == 1.0 ? outputs[i] : at::div(outputs[i], divisor));
    for (size_t i = 0; options_.by_microbatch && keeps_details(case_) && i + local < outputs.size(); ++i)
      if (outputs[i].defined())
        put(results_, {step, ResultKind::Output, -1, microbatch, models::output_name(model_, i)}, outputs[i]);
    return losses;
  }

  void put_input_gradients(int step, int microbatch, const models::Batch& chunk) {
    for (size_t i = 0; i < chunk.inputs.size(); ++i)
      if (chunk.inputs[i].defined() && chunk.inputs[i].grad().defined())
        put(results_, {step, ResultKind::InputGrad, -1, microbatch, model_.input_names[i]}, chunk.inputs[i].grad());
  }

  const Case& case_;
  uint64_t seed_;
  WholeModelOptions options_;
  models::Model model_;
  StageSeeder seeder_;
  Results& results_;
  CountedHooks hooks_;
  int64_t train_steps_ = 0;
};

}  // namespace

Results run_whole_model(const Case& c, uint64_t seed, const WholeModelOptions& options) {
  Results results;
  const SavedState begin = saved_state(c, seed);
  WholeModel subject(c, seed, options, begin, results);
  run_case(c, seed, subject, results, begin);
  return results;
}

}  // namespace plumbline::reference
