#include "conformance/backend/engine_subject.h"

#include <ATen/ops/div.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/nn/module.h>

#include <iterator>
#include <set>

#include "conformance/backend/weight_closures.h"
#include "conformance/corpus/case_schedule.h"
#include "reference/hooks.h"
#include "reference/loss.h"
#include "reference/oracle/case_run.h"
#include "runtime/engine/engine.h"
#include "runtime/graph/device.h"
#include "runtime/microbatch/chunk.h"
#include "runtime/split/module_pipe.h"

namespace plumbline::conformance {
namespace {

class EngineSubject : public reference::CaseSubject, private engine::EngineObserver {
 public:
  EngineSubject(const reference::Case& c, transport::Transport& transport, const EngineCaseOptions& options,
                const reference::SavedState& begin, reference::Results& results)
      : case_(c),
        device_(options.device),
        results_(results),
        model_(reference::model_of(c, options.seed, begin)),
        engine_(transport, schedule(options), pipes(options), engine_options(options)) {}

  void train(int step, const models::Batch& given) override {
    const models::Batch batch = there(given);
    begin(step, batch);
    if (case_.divided || (case_.input_gradients && !case_.whole_gradients)) {
      const microbatch::Microbatches divided = microbatches_of(batch, /*training=*/true);
      record(engine_.train(divided));
      for (size_t m = 0; m < divided.inputs.size(); ++m) put_input_gradients(static_cast<int>(m), divided.inputs[m]);
      return;
    }
    std::vector<at::Tensor> inputs = batch.inputs;
    if (case_.whole_gradients)
      for (at::Tensor& input : inputs) make_leaf(input);
    if (case_.keyword_inputs)
      record(engine_.train({}, named(inputs), batch.targets));
    else
      record(engine_.train(inputs, batch.targets));
    if (case_.whole_gradients) put_input_gradients(-1, inputs);
  }
  void evaluate(int step, const models::Batch& given) override {
    const models::Batch batch = there(given);
    begin(step, batch);
    if (case_.divided)
      record(engine_.evaluate(microbatches_of(batch, /*training=*/false)));
    else
      record(engine_.evaluate(batch.inputs, batch.targets));
  }
  void zero_grad() override { engine_.zero_grad(); }
  void set_trainable(const std::string& pattern, bool trainable) override {
    // A capture reads the parameters of the whole model, also of stages on other ranks.
    plumbline::reference::set_trainable(reference::first_names(model_.module->named_parameters()), pattern, trainable);
    plumbline::reference::set_trainable(parameters(), pattern, trainable);
    engine_.forget_plans();
  }
  reference::NamedTensors parameters() const override {
    reference::NamedTensors out;
    for (const auto& [stage, state] : engine_.states())
      for (const auto& item : state.parameters) out.push_back(item);
    return out;
  }
  reference::NamedTensors buffers() const override {
    reference::NamedTensors out;
    for (const auto& [stage, state] : engine_.states())
      for (const auto& item : state.buffers) out.push_back(item);
    return out;
  }
  double gradient_norm(reference::NormKind kind) const override {
    return engine_.gradient_norm(kind == reference::NormKind::Two ? engine::Norm::Two : engine::Norm::Infinity);
  }

 private:
  /// As a user whose loader puts batches on the device.
  models::Batch there(models::Batch batch) const {
    if (device_.is_cpu()) return batch;
    for (at::Tensor& input : batch.inputs)
      if (input.defined()) input = input.to(device_);
    batch.targets = batch.targets.map([&](const at::Tensor& target) { return target.to(device_); });
    for (models::Batch& part : batch.parts) part = there(std::move(part));
    return batch;
  }

  void begin(int step, const models::Batch& batch) {
    step_ = step;
    divisor_ = reference::loss_divisor(case_, batch.targets);
  }

  static schedule::Schedule schedule(const EngineCaseOptions& options) {
    schedule::Schedule schedule = options.schedule;
    if (options.fault && options.fault->schedule) options.fault->schedule(schedule);
    return schedule;
  }

  engine::PipeSource pipes(const EngineCaseOptions& options) {
    const split::SplitOptions split = models::case_split(case_, model_, options.schedule.stages);
    engine::PipeSource source = [this, split](bool training, const std::vector<at::Tensor>& inputs) {
      split::Pipe pipe = split::make_pipe({model_.module.get(), model_.forward, model_.input_names},
                                          graph::on_host(inputs), training, split);
      if (case_.weight_closures) defer_weight_gradients(pipe);
      return pipe;
    };
    return options.fault && options.fault->pipes ? options.fault->pipes(std::move(source)) : source;
  }

  engine::EngineOptions engine_options(const EngineCaseOptions& options) {
    engine::EngineOptions engine;
    engine.input_names = model_.input_names;
    engine.input_chunks = model_.input_chunks;
    engine.target_chunk = model_.target_chunk;
    engine.loss = [this](const std::vector<at::Tensor>& outputs, const Targets& targets) {
      if (!reference::has_loss(case_.loss, targets)) return at::Tensor();
      // Of a rank's stages, the last one computes losses.
      const split::StageState& state = std::prev(engine_.states().end())->second;
      return reference::compute_loss(case_.loss, outputs, targets, divisor_,
                                     reference::loss_parameters(case_.loss, state.parameters));
    };
    engine.local_loss = [this](const at::Tensor& loss) { return divisor_ == 1.0 ? loss : at::div(loss, divisor_); };
    engine.loss_scale = case_.optimizer.loss_scale;
    engine.mean_loss = case_.loss.reduction == reference::Reduction::Mean && !case_.loss.equal_weights;
    if (reference::counts_targets(case_.loss))
      engine.mean_count = [this](const Targets& targets) { return reference::counted_targets(case_.loss, targets); };
    engine.divide_by_microbatches = case_.division == reference::Division::Engine;
    engine.seed = options.seed;
    engine.timeout = options.timeout;
    engine.replicas = replica_options(case_);
    if (case_.weight_closures) engine.weight_work = [](int, int) { return take_weight_work(); };
    engine.recompute = options.recompute;
    engine.remat = options.remat;
    engine.device = options.device;
    if (reference::keeps_details(case_)) engine.observer = this;
    engine.decorate = [this, fault = options.fault](int stage, const split::StageState& state,
                                                    std::unique_ptr<engine::StageRunner> runner) {
      reference::CountedHooks& hooks = hooks_[stage];
      for (const auto& [name, parameter] : state.parameters) {
        if (!hooked_.emplace(stage, name).second) continue;
        if (case_.parameter_hooks) hooks.add(name, parameter);
        if (case_.accumulation_hooks) hooks.add_after(name, parameter);
      }
      return fault && fault->stage ? fault->stage(stage, state, std::move(runner)) : std::move(runner);
    };
    if (options.fault && options.fault->options) options.fault->options(engine);
    return engine;
  }

  std::map<std::string, at::Tensor> named(const std::vector<at::Tensor>& inputs) const {
    std::map<std::string, at::Tensor> by_name;
    for (size_t i = 0; i < inputs.size(); ++i) by_name[model_.input_names[i]] = inputs[i];
    return by_name;
  }

  static void make_leaf(at::Tensor& input) {
    if (input.defined() && input.is_floating_point()) input = input.detach().requires_grad_();
  }

  /// As a user gives them who divides the batch. In training, floating-point inputs are leaves that require gradients
  /// in the micro-batches in which the case says so.
  microbatch::Microbatches microbatches_of(const models::Batch& batch, bool training) const {
    microbatch::Microbatches divided;
    for (const models::Batch& part : batch.parts) {
      divided.inputs.push_back(
          case_.keyword_inputs ? microbatch::bind_inputs(model_.input_names, {}, named(part.inputs)) : part.inputs);
      divided.targets.push_back(part.targets);
    }
    if (batch.parts.empty())
      divided = {microbatch::split_inputs(model_.input_names, batch.inputs, model_.input_chunks, case_.microbatches),
                 microbatch::split_targets(batch.targets, case_.microbatches, model_.target_chunk)};
    for (size_t m = 0; training && m < divided.inputs.size(); ++m)
      if (reference::requires_gradients(case_, static_cast<int>(m)))
        for (at::Tensor& input : divided.inputs[m]) make_leaf(input);
    return divided;
  }

  /// Those that the step left in the tensors that it was given: of a micro-batch, or (-1) of the batch.
  void put_input_gradients(int microbatch, const std::vector<at::Tensor>& inputs) {
    for (size_t i = 0; reference::keeps_details(case_) && i < inputs.size(); ++i)
      if (inputs[i].defined() && inputs[i].grad().defined())
        reference::put(results_, {step_, reference::ResultKind::InputGrad, -1, microbatch, model_.input_names[i]},
                       inputs[i].grad());
  }

  void record(const engine::StepResult& step) {
    for (size_t m = 0; m < step.losses.size(); ++m)
      if (step.losses[m].defined())
        reference::put(results_, {step_, reference::ResultKind::Loss, -1, static_cast<int>(m), "loss"}, step.losses[m]);
    const auto put_outputs = [&](reference::ResultKind kind, const std::vector<std::vector<at::Tensor>>& of_step) {
      for (size_t m = 0; m < of_step.size(); ++m)
        for (size_t i = 0; i < of_step[m].size(); ++i)
          if (of_step[m][i].defined())
            reference::put(results_, {step_, kind, -1, static_cast<int>(m), models::output_name(model_, i)},
                           of_step[m][i]);
    };
    put_outputs(reference::ResultKind::Loss, step.local_losses);
    if (reference::keeps_details(case_)) put_outputs(reference::ResultKind::Output, step.outputs);
  }

  void on_boundary_input(int stage, int, const std::string& name, const at::Tensor& value) override {
    if (case_.boundary_hooks) hooks_[stage].watch(name, value);
  }
  void on_forward(int stage, int microbatch, const std::string& name, const at::Tensor& value) override {
    reference::put(results_, {step_, reference::ResultKind::Forward, stage, microbatch, name}, value);
  }
  void on_backward(int stage, int microbatch, const std::string& name, const at::Tensor& grad) override {
    reference::put(results_, {step_, reference::ResultKind::Backward, stage, microbatch, name}, grad);
    if (case_.boundary_hooks) put_hook_calls(stage, microbatch, name);
  }
  void on_parameter_gradient(int stage, int microbatch, const std::string& name, const at::Tensor& grad) override {
    reference::put(results_, {step_, reference::ResultKind::Partial, stage, microbatch, name}, grad);
    if (case_.parameter_hooks || case_.accumulation_hooks) put_hook_calls(stage, microbatch, name);
    if (!case_.accumulation_hooks) return;
    if (const at::Tensor seen = hooks_.at(stage).take_seen(name); seen.defined())
      reference::put(results_, {step_, reference::ResultKind::Accumulated, stage, microbatch, name}, seen);
  }
  void put_hook_calls(int stage, int microbatch, const std::string& name) {
    reference::put(results_, {step_, reference::ResultKind::HookCalls, stage, microbatch, name},
                   at::scalar_tensor(hooks_.at(stage).take(name), at::kLong));
  }

  const reference::Case& case_;
  const c10::Device device_;
  reference::Results& results_;
  models::Model model_;
  int step_ = 0;
  double divisor_ = 1.0;                          ///< of the step's losses
  std::map<int, reference::CountedHooks> hooks_;  ///< by stage
  std::set<std::pair<int, std::string>> hooked_;  ///< stages and parameters
  engine::Engine engine_;
};

}  // namespace

reference::Results run_case_on_rank(const reference::Case& c, transport::Transport& transport,
                                    const EngineCaseOptions& options) {
  reference::Results results;
  const Fault* fault = options.fault;
  reference::SavedState begin = reference::saved_state(c, options.seed);
  if (fault && fault->resumes) fault->resumes(begin);
  EngineSubject subject(c, transport, options, begin, results);
  const std::unique_ptr<reference::CaseSubject> around = fault && fault->steps ? fault->steps(subject) : nullptr;
  reference::run_case(c, options.seed, around ? *around : subject, results, begin);
  if (fault && fault->results) fault->results(results);
  return results;
}

}  // namespace plumbline::conformance
