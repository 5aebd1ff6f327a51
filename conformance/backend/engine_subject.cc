#include "conformance/backend/engine_subject.h"

#include <torch/nn/module.h>

#include "reference/case_run.h"
#include "reference/loss.h"
#include "runtime/engine/engine.h"
#include "runtime/split/module_pipe.h"

namespace plumbline {
namespace {

class EngineSubject : public CaseSubject, private EngineObserver {
 public:
  EngineSubject(const Case& c, Transport& transport, const EngineCaseOptions& options, Results& results)
      : case_(c),
        results_(results),
        model_(make_model(c.model, c.dtype, options.seed)),
        engine_(transport, schedule(options), pipes(options), engine_options(options)) {}

  void train(int step, const Batch& batch) override {
    step_ = step;
    record(engine_.train(batch.inputs, batch.target));
  }
  void evaluate(int step, const Batch& batch) override {
    step_ = step;
    record(engine_.evaluate(batch.inputs, batch.target));
  }
  void zero_grad() override { engine_.zero_grad(); }
  std::vector<std::pair<std::string, at::Tensor>> parameters() const override {
    std::vector<std::pair<std::string, at::Tensor>> out;
    for (const auto& [stage, state] : engine_.states())
      for (const auto& item : state.parameters) out.push_back(item);
    return out;
  }
  std::vector<std::pair<std::string, at::Tensor>> buffers() const override {
    std::vector<std::pair<std::string, at::Tensor>> out;
    for (const auto& [stage, state] : engine_.states())
      for (const auto& item : state.buffers) out.push_back(item);
    return out;
  }

 private:
  static Schedule schedule(const EngineCaseOptions& options) {
    Schedule schedule = options.schedule;
    if (options.fault && options.fault->schedule) options.fault->schedule(schedule);
    return schedule;
  }

  PipeSource pipes(const EngineCaseOptions& options) {
    SplitOptions split;
    split.points = stage_points(model_, options.schedule.stages);
    split.loss_outputs = std::vector<int>{0};
    PipeSource source = [this, split](bool training, const std::vector<at::Tensor>& inputs) {
      return make_pipe({model_.module.get(), model_.forward, model_.input_names}, inputs, training, split);
    };
    return options.fault && options.fault->pipes ? options.fault->pipes(std::move(source)) : source;
  }

  EngineOptions engine_options(const EngineCaseOptions& options) {
    EngineOptions engine;
    engine.input_names = model_.input_names;
    engine.input_chunks = model_.input_chunks;
    engine.loss = [this](const std::vector<at::Tensor>& outputs, const at::Tensor& target) {
      return compute_loss(case_.loss, outputs, target);
    };
    engine.mean_loss = case_.loss.reduction == Reduction::Mean;
    engine.divide_by_microbatches = case_.divide_by_microbatches;
    engine.seed = options.seed;
    engine.timeout = options.timeout;
    engine.recompute = options.recompute;
    engine.remat = options.remat;
    if (keeps_details(case_)) engine.observer = this;
    if (options.fault) engine.decorate = options.fault->stage;
    if (options.fault && options.fault->options) options.fault->options(engine);
    return engine;
  }

  void record(const StepResult& step) {
    for (size_t m = 0; m < step.losses.size(); ++m)
      if (step.losses[m].defined())
        put(results_, {step_, ResultKind::Loss, -1, static_cast<int>(m), "loss"}, step.losses[m]);
    if (!keeps_details(case_)) return;
    for (size_t m = 0; m < step.outputs.size(); ++m)
      for (size_t i = 0; i < step.outputs[m].size(); ++i)
        put(results_, {step_, ResultKind::Output, -1, static_cast<int>(m), std::to_string(i)}, step.outputs[m][i]);
  }

  void on_forward(int stage, int microbatch, const std::string& name, const at::Tensor& value) override {
    put(results_, {step_, ResultKind::Forward, stage, microbatch, name}, value);
  }
  void on_backward(int stage, int microbatch, const std::string& name, const at::Tensor& grad) override {
    put(results_, {step_, ResultKind::Backward, stage, microbatch, name}, grad);
  }
  void on_partial(int stage, int microbatch, const std::string& name, const at::Tensor& grad) override {
    put(results_, {step_, ResultKind::Partial, stage, microbatch, name}, grad);
  }

  const Case& case_;
  Results& results_;
  Model model_;
  int step_ = 0;
  Engine engine_;
};

}  // namespace

Results run_case_on_rank(const Case& c, Transport& transport, const EngineCaseOptions& options) {
  Results results;
  EngineSubject subject(c, transport, options, results);
  const Fault* fault = options.fault;
  const std::unique_ptr<CaseSubject> around = fault && fault->steps ? fault->steps(subject) : nullptr;
  run_case(c, options.seed, around ? *around : subject, results);
  if (fault && fault->results) fault->results(results);
  return results;
}

}  // namespace plumbline
