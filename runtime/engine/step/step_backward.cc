// The backward actions of a step: B, its halves I and W, and their transfers.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <utility>

#include "runtime/engine/gradients.h"
#include "runtime/engine/step/step.h"

namespace plumbline::engine {
namespace {

/// Whether a gradient of one of the stage's inputs is sent anywhere.
bool returns_gradients(const split::Pipe& pipe, int stage) {
  return std::ranges::any_of(pipe.stages[stage].inputs, [&](int b) { return pipe.boundaries[b].has_gradient; });
}

}  // namespace

void Step::receive_backward(int stage, int microbatch) {
  MicrobatchState& state = state_of(stage, microbatch);
  const Plan& plan = plan_.plan;
  state.pending_gradients.resize(plan.outgoing[stage].size());
  for (size_t i = 0; i < plan.outgoing[stage].size(); ++i) {
    const int c = plan.outgoing[stage][i];
    const split::Boundary& boundary = plan.boundary(c, microbatch);
    const int consumer = plan.channels[c].consumer_stage;
    if (!boundary.has_gradient || context_.is_local(consumer, microbatch)) continue;
    state.pending_gradients[i] =
        courier_.post_receive(boundary, context_.rank_of(consumer, microbatch), plan.backward_tag(c, microbatch));
  }
}

/// The sum of the gradients that the consumers of one output return, the last stage's first: autograd's order in the
/// uncut model.
at::Tensor Step::output_gradient(int stage, int microbatch, int output) {
  const c10::NoGradGuard no_grad;
  MicrobatchState& state = state_of(stage, microbatch);
  const Plan& plan = plan_.plan;
  at::Tensor sum;
  for (size_t i = plan.outgoing[stage].size(); i-- > 0;) {
    const int c = plan.outgoing[stage][i];
    const split::Boundary& boundary = plan.boundary(c, microbatch);
    if (boundary.output != output) continue;
    at::Tensor part;
    const int consumer = plan.channels[c].consumer_stage;
    if (context_.is_local(consumer, microbatch)) {
      part = std::move(state_of(consumer, microbatch).input_grads[plan.channels[c].consumer_input]);
    } else {
      part = courier_.receive(state.pending_gradients[i], [&] {
        return place(stage, microbatch) + ", gradient of '" + boundary.name + "' " +
               graph::describe(boundary.value.dtype, boundary.value.sizes) + " from stage " + std::to_string(consumer);
      });
    }
    sum = sum.defined() ? at::add(sum, part) : part;
  }
  return sum;
}

/// From the loss, or from the gradients of the outputs, to those of the inputs, by backward() or backward_input().
/// False if no loss that has a weight depends on the results of this stage.
bool Step::pass_back(int stage, int microbatch, Pass pass) {
  MicrobatchState& state = state_of(stage, microbatch);
  const split::Pipe& pipe = plan_.plan.pipe(microbatch);
  std::vector<at::Tensor> roots = std::move(buffers_.roots), root_grads = std::move(buffers_.root_grads);
  // A loss of weight 0 is left out: it may be 0/0, a mean over nothing, which would make its gradients NaN.
  const auto begin_at = [&](const at::Tensor& loss) {
    if (loss_weights_[microbatch] == 0 || !loss.requires_grad()) return;
    roots.push_back(loss);
    root_grads.push_back(at::full_like(loss, loss_weights_[microbatch]));
  };
  if (context_.is_last(stage)) {
    begin_at(state.loss);
  } else {
    for (int b : pipe.stages[stage].outputs) {
      const split::Boundary& boundary = pipe.boundaries[b];
      if (!boundary.has_gradient) continue;
      at::Tensor grad = output_gradient(stage, microbatch, boundary.output);
      const at::Tensor& output = state.outputs[boundary.output];
      if (!output.defined() || !output.requires_grad()) continue;  // the branch taken has no gradient
      roots.push_back(output);
      root_grads.push_back(std::move(grad));
    }
  }
  for (const at::Tensor& loss : state.local_losses) begin_at(loss);
  state.input_grads.assign(state.inputs.size(), at::Tensor());
  const bool passed = !roots.empty();
  if (passed)
    compute(stage, microbatch, [&](StageRunner& runner) {
      (runner.*pass)(microbatch, roots, root_grads, state.inputs, state.input_grads);
    });
  roots.clear();
  root_grads.clear();
  buffers_.roots = std::move(roots);
  buffers_.root_grads = std::move(root_grads);
  finish_input_gradients(stage, microbatch);
  // Autograd keeps those that a second half needs.
  state.outputs.clear();
  state.inputs.clear();
  state.loss.reset();
  state.local_losses.clear();
  return passed;
}

/// The graph requires a gradient for an input; if autograd found none (a zero derivative), zeros are summed. Laid out
/// like a gradient from another rank: the bits must not depend on where the producer is.
void Step::finish_input_gradients(int stage, int microbatch) {
  MicrobatchState& state = state_of(stage, microbatch);
  const split::Pipe& pipe = plan_.plan.pipe(microbatch);
  EngineObserver* const observer = context_.options.observer;
  const std::vector<int>& inputs = pipe.stages[stage].inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const split::Boundary& boundary = pipe.boundaries[inputs[i]];
    if (!boundary.has_gradient) continue;
    at::Tensor& grad = state.input_grads[i];
    if (!grad.defined()) grad = at::zeros_like(state.inputs[i]).detach();
    require_dense(boundary.name, grad);
    grad = in_transfer_layout(grad, context_.options.keep_strides);
    if (observer) observer->on_backward(stage, microbatch, boundary.name, grad);
  }
}

/// Only now: a backward adds to the .grad of a leaf, which a replicated input is for every micro-batch.
void Step::give_input_gradients() {
  if (!context_.reads_inputs()) return;
  const c10::NoGradGuard no_grad;
  for (size_t m = 0; m < batch_.inputs.size(); ++m) {
    const std::vector<at::Tensor>& grads = state_of(0, static_cast<int>(m)).input_grads;
    if (grads.empty()) continue;  // another replica's micro-batch
    size_t given = 0;
    for (size_t i = 0; i < batch_.inputs[m].size(); ++i) {
      const at::Tensor& input = batch_.inputs[m][i];
      if (!input.defined()) continue;
      const at::Tensor& grad = grads[given++];
      if (!grad.defined() || !input.is_leaf()) continue;
      require_dense(context_.options.input_names[i], grad);
      at::Tensor& sum = input.mutable_grad();
      sum = sum.defined() ? at::add(sum, grad) : grad;
    }
  }
}

void Step::backward(int stage, int microbatch) {
  const bool passed = pass_back(stage, microbatch, &StageRunner::backward);
  if (passed && context_.options.weight_work) {
    separate_gradients(*stage_of(stage).state);
    compute(stage, microbatch, [&](StageRunner&) {
      const c10::NoGradGuard no_grad;
      if (const WeightWork work = context_.options.weight_work(stage, microbatch)) work();
    });
  }
  finish_parameter_gradients(stage, microbatch);
}

void Step::backward_input(int stage, int microbatch) {
  MicrobatchState& state = state_of(stage, microbatch);
  if (context_.options.weight_work) {
    if (!pass_back(stage, microbatch, &StageRunner::backward)) return;
    separate_gradients(*stage_of(stage).state);
    compute(stage, microbatch,
            [&](StageRunner&) { state.user_work = context_.options.weight_work(stage, microbatch); });
    if (state.user_work) state.weight_half = WeightHalf::UserWork;
  } else if (!returns_gradients(plan_.plan.pipe(microbatch), stage)) {
    state.weight_half = WeightHalf::FullBackward;
  } else if (pass_back(stage, microbatch, &StageRunner::backward_input)) {
    state.weight_half = WeightHalf::Weights;
  }
}

void Step::backward_weight(int stage, int microbatch) {
  MicrobatchState& state = state_of(stage, microbatch);
  switch (std::exchange(state.weight_half, WeightHalf::None)) {
    case WeightHalf::None:
      break;
    case WeightHalf::FullBackward:
      pass_back(stage, microbatch, &StageRunner::backward);
      break;
    case WeightHalf::Weights:
      compute(stage, microbatch, [&](StageRunner& runner) { runner.backward_weight(microbatch); });
      break;
    case WeightHalf::UserWork:
      compute(stage, microbatch, [&](StageRunner&) {
        const c10::NoGradGuard no_grad;
        std::exchange(state.user_work, nullptr)();
      });
      break;
  }
  finish_parameter_gradients(stage, microbatch);
}

void Step::finish_parameter_gradients(int stage, int microbatch) {
  const split::StageState& stage_state = *stage_of(stage).state;
  state_of(stage, microbatch).saved.clear();
  separate_gradients(stage_state);
  if (!context_.options.observer) return;
  for (const auto& [name, tensor] : stage_state.parameters)
    if (tensor.grad().defined())
      context_.options.observer->on_parameter_gradient(stage, microbatch, name, tensor.grad().detach().clone());
}

void Step::send_backward(int stage, int microbatch) {
  MicrobatchState& state = state_of(stage, microbatch);
  const Plan& plan = plan_.plan;
  for (int c : plan.incoming[stage]) {
    const split::Boundary& boundary = plan.boundary(c, microbatch);
    if (!boundary.has_gradient || context_.is_local(boundary.producer, microbatch)) continue;
    courier_.send({stage, schedule::ActionType::SEND_B, microbatch},
                  make_outgoing(state.input_grads[plan.channels[c].consumer_input], context_.options.keep_strides),
                  context_.rank_of(boundary.producer, microbatch), plan.backward_tag(c, microbatch));
  }
  // There are none yet if the stage-0 rule left everything to the W.
  if (state.input_grads.empty()) return;
  for (int c : plan.incoming[stage])
    if (!context_.is_local(plan.boundary(c, microbatch).producer, microbatch))
      state.input_grads[plan.channels[c].consumer_input].reset();
}

}  // namespace plumbline::engine
