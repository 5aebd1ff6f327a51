// The backward actions of Engine: B, its halves I and W, and their transfers.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros_like.h>

#include "runtime/engine/engine.h"
#include "runtime/engine/engine_state.h"

namespace plumbline::engine {

void Engine::receive_backward(int stage, int microbatch) {
  Flight& f = flight(stage, microbatch);
  const Plan& plan = mode_->plan;
  f.arriving_grads.resize(plan.outgoing[stage].size());
  for (size_t i = 0; i < plan.outgoing[stage].size(); ++i) {
    const int c = plan.outgoing[stage][i];
    const split::Boundary& boundary = plan.boundary(c, microbatch);
    if (!boundary.has_gradient || is_local(plan.channels[c].consumer_stage, microbatch)) continue;
    f.arriving_grads[i] =
        expect_value(boundary, rank_of(plan.channels[c].consumer_stage, microbatch), plan.backward_tag(c, microbatch));
  }
}

/// The sum of what the consumers of one output hand back, the last stage's first: the order in which autograd would
/// meet them if nothing were cut.
at::Tensor Engine::output_gradient(int stage, int microbatch, int output) {
  const c10::NoGradGuard no_grad;
  Flight& f = flight(stage, microbatch);
  const Plan& plan = mode_->plan;
  at::Tensor sum;
  for (size_t i = plan.outgoing[stage].size(); i-- > 0;) {
    const int c = plan.outgoing[stage][i];
    const split::Boundary& boundary = plan.boundary(c, microbatch);
    if (boundary.output != output) continue;
    at::Tensor part;
    const int consumer = plan.channels[c].consumer_stage;
    if (is_local(consumer, microbatch)) {
      part = std::move(flight(consumer, microbatch).input_grads[plan.channels[c].consumer_input]);
    } else {
      part = take(f.arriving_grads[i], [&] {
        return place(stage, microbatch) + ", gradient of '" + boundary.name + "' " +
               graph::describe(boundary.value.dtype, boundary.value.sizes) + " from stage " + std::to_string(consumer);
      });
    }
    sum = sum.defined() ? at::add(sum, part) : part;
  }
  return sum;
}

/// From the loss, or from the gradients of the outputs, to those of the inputs, by backward() or backward_input().
/// False where the loss does not depend on what this stage made.
bool Engine::pass_back(int stage, int microbatch, Pass pass) {
  Flight& f = flight(stage, microbatch);
  const split::Pipe& pipe = mode_->plan.pipe(microbatch);
  const split::Stage& part = pipe.stages[stage];
  bool passed = false;
  {
    std::vector<at::Tensor> roots, root_grads;
    if (stage == schedule_.stages - 1) {
      if (f.loss.requires_grad()) {
        roots.push_back(f.loss);
        root_grads.push_back(at::full_like(f.loss, loss_weights_[microbatch]));
      }
    } else {
      for (int b : part.outputs) {
        const split::Boundary& boundary = pipe.boundaries[b];
        if (!boundary.has_gradient) continue;
        const at::Tensor grad = output_gradient(stage, microbatch, boundary.output);
        const at::Tensor& output = f.outputs[boundary.output];
        if (!output.defined() || !output.requires_grad()) continue;  // the branch taken has no gradient
        roots.push_back(output);
        root_grads.push_back(grad);
      }
    }
    f.input_grads.assign(f.inputs.size(), at::Tensor());
    passed = !roots.empty();
    if (passed)
      compute(stage, microbatch,
              [&](StageRunner& runner) { (runner.*pass)(microbatch, roots, root_grads, f.inputs, f.input_grads); });
  }
  // The graph said that a gradient flows here; where autograd found none (a zero derivative) the sum goes on with
  // zeros. Laid out as what comes from another rank is: the bits must not depend on where the producer is.
  for (size_t i = 0; i < part.inputs.size(); ++i) {
    const split::Boundary& boundary = pipe.boundaries[part.inputs[i]];
    if (!boundary.has_gradient) continue;
    at::Tensor& grad = f.input_grads[i];
    if (!grad.defined()) grad = at::zeros_like(f.inputs[i]).detach();
    grad = as_it_crosses(grad, options_.keep_strides);
    if (options_.observer) options_.observer->on_backward(stage, microbatch, boundary.name, grad);
  }
  if (stage == 0 && options_.observer) {
    size_t given = 0;
    for (size_t i = 0; i < batch_.inputs[microbatch].size(); ++i) {
      if (!batch_.inputs[microbatch][i].defined()) continue;
      const at::Tensor& grad = f.input_grads[given++];
      if (grad.defined()) options_.observer->on_input_gradient(microbatch, static_cast<int>(i), grad);
    }
  }
  // What a second half needs of these autograd keeps.
  f.outputs.clear();
  f.inputs.clear();
  f.loss = at::Tensor();
  return passed;
}

void Engine::backward(int stage, int microbatch) {
  if (pass_back(stage, microbatch, &StageRunner::backward) && options_.weight_work)
    compute(stage, microbatch, [&](StageRunner&) {
      const c10::NoGradGuard no_grad;
      if (const WeightWork work = options_.weight_work(stage, microbatch)) work();
    });
  separate_gradients(states_.at(stage));
  report_partials(stage, microbatch);
}

void Engine::backward_input(int stage, int microbatch) {
  Flight& f = flight(stage, microbatch);
  if (options_.weight_work) {
    if (!pass_back(stage, microbatch, &StageRunner::backward)) return;
    compute(stage, microbatch, [&](StageRunner&) { f.weight_half = options_.weight_work(stage, microbatch); });
  } else if (!hands_back_gradients(stage, microbatch)) {
    f.weight_half = [this, stage, microbatch] { pass_back(stage, microbatch, &StageRunner::backward); };
  } else if (pass_back(stage, microbatch, &StageRunner::backward_input)) {
    f.weight_half = [this, stage, microbatch] {
      compute(stage, microbatch, [&](StageRunner& runner) { runner.backward_weight(microbatch); });
    };
  }
}

void Engine::backward_weight(int stage, int microbatch) {
  const std::function<void()> half = std::exchange(flight(stage, microbatch).weight_half, nullptr);
  if (half && options_.weight_work)
    compute(stage, microbatch, [&](StageRunner&) {
      const c10::NoGradGuard no_grad;
      half();
    });
  else if (half)
    half();
  separate_gradients(states_.at(stage));
  report_partials(stage, microbatch);
}

/// Whether a gradient of one of the stage's inputs goes anywhere.
bool Engine::hands_back_gradients(int stage, int microbatch) const {
  const split::Pipe& pipe = mode_->plan.pipe(microbatch);
  for (int b : pipe.stages[stage].inputs)
    if (pipe.boundaries[b].has_gradient) return true;
  return false;
}

void Engine::report_partials(int stage, int microbatch) {
  if (!options_.observer) return;
  for (const auto& [name, tensor] : states_.at(stage).parameters)
    if (tensor.grad().defined()) options_.observer->on_partial(stage, microbatch, name, tensor.grad().detach().clone());
}

void Engine::send_backward(int stage, int microbatch) {
  Flight& f = flight(stage, microbatch);
  const Plan& plan = mode_->plan;
  for (int c : plan.incoming[stage]) {
    const split::Boundary& boundary = plan.boundary(c, microbatch);
    if (!boundary.has_gradient || is_local(boundary.producer, microbatch)) continue;
    send({stage, schedule::ActionType::SEND_B, microbatch},
         depart(f.input_grads[plan.channels[c].consumer_input], options_.keep_strides),
         rank_of(boundary.producer, microbatch), plan.backward_tag(c, microbatch));
  }
  // Where the stage-0 rule left everything to the W there are none yet.
  if (f.input_grads.empty()) return;
  for (int c : plan.incoming[stage])
    if (!is_local(plan.boundary(c, microbatch).producer, microbatch))
      f.input_grads[plan.channels[c].consumer_input] = at::Tensor();
}

}  // namespace plumbline::engine
