#include "conformance/proof/executions/observed_rank.h"

#include <set>
#include <utility>

#include "reference/result_key.h"
#include "runtime/engine/stage/forwarding_runner.h"

namespace plumbline::proof {
namespace {

/// Tells the recorder which action of the stage runs.
class PlacedStage : public engine::ForwardingRunner {
 public:
  PlacedStage(std::unique_ptr<engine::StageRunner> inner, int stage, const split::StageState& state, Recorder& recorder)
      : ForwardingRunner(std::move(inner)), stage_(stage), state_(state), recorder_(recorder) {}

  void forward(int microbatch, std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs) override {
    const Action action(recorder_, stage_, microbatch, 'F');
    inner_->forward(microbatch, inputs, outputs);
  }
  void backward(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) override {
    const Action action(recorder_, stage_, microbatch, 'B');
    inner_->backward(microbatch, roots, root_grads, inputs, input_grads);
  }
  void backward_input(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                      std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) override {
    const std::map<std::string, TermId> before = gradients();
    const Action action(recorder_, stage_, microbatch, 'I');
    inner_->backward_input(microbatch, roots, root_grads, inputs, input_grads);
    for (const auto& [name, id] : gradients()) {
      const auto known = before.find(name);
      if (known == before.end() || known->second != id)
        recorder_.note_misplaced("the input half changed the gradient of " + name);
    }
  }
  void backward_weight(int microbatch) override {
    const Action action(recorder_, stage_, microbatch, 'W');
    inner_->backward_weight(microbatch);
  }

 private:
  class Action {
   public:
    Action(Recorder& recorder, int stage, int microbatch, char name) : recorder_(recorder) {
      recorder_.enter(stage, microbatch, name);
    }
    ~Action() { recorder_.leave(); }
    Action(const Action&) = delete;
    Action& operator=(const Action&) = delete;

   private:
    Recorder& recorder_;
  };

  std::map<std::string, TermId> gradients() const {
    std::map<std::string, TermId> terms;
    for (const auto& [name, parameter] : state_.parameters)
      if (parameter.grad().defined()) terms.emplace(name, recorder_.term_of(parameter.grad()));
    return terms;
  }

  int stage_;
  const split::StageState& state_;
  Recorder& recorder_;
};

/// Observes while it lives; names each batch before anyone sees it.
class ObservedSteps : public reference::CaseSubject {
 public:
  ObservedSteps(reference::CaseSubject& inner, std::unique_ptr<reference::CaseSubject> around, Recorder& recorder)
      : around_(std::move(around)), inner_(around_ ? *around_ : inner), recorder_(recorder), scope_(recorder) {}

  void train(int step, const models::Batch& batch) override {
    name_batch(recorder_, step, batch);
    inner_.train(step, batch);
  }
  void evaluate(int step, const models::Batch& batch) override {
    name_batch(recorder_, step, batch);
    inner_.evaluate(step, batch);
  }
  void zero_grad() override { inner_.zero_grad(); }
  void set_trainable(const std::string& pattern, bool trainable) override { inner_.set_trainable(pattern, trainable); }
  reference::NamedTensors parameters() const override { return inner_.parameters(); }
  reference::NamedTensors buffers() const override { return inner_.buffers(); }
  double gradient_norm(reference::NormKind kind) const override { return inner_.gradient_norm(kind); }
  void update(reference::CaseOptimizer& optimizer) override { inner_.update(optimizer); }

 private:
  std::unique_ptr<reference::CaseSubject> around_;
  reference::CaseSubject& inner_;
  Recorder& recorder_;
  capture::InterposerScope scope_;
};

/// A lone target has no number. `of`: " of step 0", or ", micro-batch 1 of step 0".
void name_targets(Recorder& recorder, const Targets& targets, const std::string& of) {
  for (size_t i = 0; i < targets.size(); ++i)
    recorder.name_leaf(targets[i], "target",
                       targets.size() == 1 ? of.substr(of.find_first_not_of(", ")) : std::to_string(i) + of);
}

}  // namespace

void name_batch(Recorder& recorder, int step, const models::Batch& batch) {
  const std::string of = " of step " + std::to_string(step);
  for (size_t i = 0; i < batch.inputs.size(); ++i) recorder.name_leaf(batch.inputs[i], "input", std::to_string(i) + of);
  name_targets(recorder, batch.targets, of);
  for (size_t m = 0; m < batch.parts.size(); ++m) {
    const std::string of_part = ", micro-batch " + std::to_string(m) + of;
    for (size_t i = 0; i < batch.parts[m].inputs.size(); ++i)
      recorder.name_leaf(batch.parts[m].inputs[i], "input", std::to_string(i) + of_part);
    name_targets(recorder, batch.parts[m].targets, of_part);
  }
}

void name_state(Recorder& recorder, const split::StageState& state) {
  for (const auto& [name, tensor] : state.parameters) recorder.name_leaf(tensor, "parameter", name);
  for (const auto& [name, tensor] : state.buffers) recorder.name_leaf(tensor, "buffer", name);
}

ResultTerms terms_of(Recorder& recorder, const reference::Results& results) {
  using enum reference::ResultKind;
  static const std::set<reference::ResultKind> compared = {Forward, Output, Loss,  Backward,      InputGrad,
                                                           Grad,    Buffer, Param, OptimizerState};
  ResultTerms terms;
  for (const auto& [text, tensor] : results)
    if (compared.contains(reference::parse_result_key(text).kind)) terms.emplace(text, recorder.term_of(tensor));
  return terms;
}

conformance::Fault observed(const conformance::Fault& inner, Recorder& recorder, RankTerms& out) {
  conformance::Fault fault = inner;
  fault.stage = [&inner, &recorder, named = std::set<int>()](int stage, const split::StageState& state,
                                                             std::unique_ptr<engine::StageRunner> runner) mutable {
    if (named.insert(stage).second) name_state(recorder, state);
    if (inner.stage) runner = inner.stage(stage, state, std::move(runner));
    return std::make_unique<PlacedStage>(std::move(runner), stage, state, recorder);
  };
  fault.steps = [&inner, &recorder](reference::CaseSubject& subject) {
    return std::make_unique<ObservedSteps>(subject, inner.steps ? inner.steps(subject) : nullptr, recorder);
  };
  fault.results = [&inner, &recorder, &out](reference::Results& results) {
    if (inner.results) inner.results(results);
    out.results = terms_of(recorder, results);
    out.log = recorder.take_log();
  };
  return fault;
}

}  // namespace plumbline::proof
