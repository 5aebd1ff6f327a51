#include "reference/oracle/saved_state.h"

#include <torch/nn/module.h>

#include <algorithm>

#include "reference/oracle/precision.h"
#include "reference/oracle/whole_model.h"
#include "runtime/error.h"

namespace plumbline::reference {

SavedState saved_state(const Case& c, uint64_t seed) {
  SavedState state;
  if (c.steps_before.empty()) return state;
  Case earlier = c;
  earlier.steps = std::move(earlier.steps_before);
  earlier.steps_before.clear();
  earlier.saves_optimizer = true;
  const Unobserved unobserved;
  for (auto& [text, tensor] : run_whole_model(earlier, seed)) {
    ResultKey key = parse_result_key(text);
    if (key.kind == ResultKind::Param)
      state.parameters.emplace(std::move(key.name), tensor);
    else if (key.kind == ResultKind::Buffer)
      state.buffers.emplace(std::move(key.name), tensor);
    else if (key.kind == ResultKind::OptimizerState)
      state.optimizer.emplace(std::move(key.name), tensor);
  }
  return state;
}

void load(const SavedState& state, models::Model& model) {
  const c10::NoGradGuard no_grad;
  const auto copy = [](const std::map<std::string, at::Tensor>& saved, const NamedTensors& into) {
    if (saved.empty()) return;
    for (const auto& [name, tensor] : into) {
      const auto found = saved.find(name);
      PLUMBLINE_CHECK(found != saved.end(), "the saved state lacks " + name);
      tensor.copy_(found->second);
    }
  };
  copy(state.parameters, first_names(model.module->named_parameters()));
  copy(state.buffers, first_names(model.module->named_buffers()));
}

models::Model model_of(const Case& c, uint64_t seed, const SavedState& state) {
  models::Model model = models::make_model(c, seed);
  load(state, model);
  return model;
}

Case uninterrupted(Case c) {
  if (c.steps_before.empty()) return c;
  c.steps_before.emplace_back(StepKind::ZeroGrad);
  c.steps.insert(c.steps.begin(), c.steps_before.begin(), c.steps_before.end());
  c.steps_before.clear();
  return c;
}

int first_batch(const Case& c) {
  return static_cast<int>(std::ranges::count_if(
      c.steps_before, [](const Step& step) { return step == StepKind::Train || step == StepKind::Eval; }));
}

}  // namespace plumbline::reference
