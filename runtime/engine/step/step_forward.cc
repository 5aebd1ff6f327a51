// The forward actions of a step: F and its transfers.
#include <torch/csrc/autograd/function.h>

#include "runtime/backward/released_output.h"
#include "runtime/engine/step/loss_leaves.h"
#include "runtime/engine/step/step.h"
#include "runtime/graph/as_captured.h"
#include "runtime/split/module_pipe.h"

namespace plumbline::engine {
namespace {

/// What makes a value differ from the captured one, in brackets; empty if nothing is known of it.
std::string why_not_as_captured(const at::Tensor& output, const graph::Value& captured) {
  if (!output.defined()) return "";
  if (output.sizes() != captured.sizes) return " (a value whose size depends on data cannot cross a border)";
  return output.is_cpu() ? ""
                         : " (its type is the CPU's; under autocast a device computes other operators in float32: cut "
                           "elsewhere)";
}

void check_outputs(const Plan& plan, int stage, int microbatch, bool backward, const std::vector<at::Tensor>& outputs) {
  const split::Pipe& pipe = plan.pipe(microbatch);
  for (int b : pipe.stages[stage].outputs) {
    const split::Boundary& boundary = pipe.boundaries[b];
    const at::Tensor& output = outputs[boundary.output];
    if (!graph::is_as_captured(output, boundary.value))
      throw Error(place(stage, microbatch) + ", value '" + boundary.name + "': the stage made " +
                  graph::describe(output) + ", expected " +
                  graph::describe(boundary.value.dtype, boundary.value.sizes) +
                  why_not_as_captured(output, boundary.value));
    if (backward && output.requires_grad() && !boundary.value.requires_grad)
      throw InputError(place(stage, microbatch) + ", value '" + boundary.name +
                       "': it needed no gradient when the stages were cut, and needs one now that other parameters "
                       "require gradients; make a new engine after changing requires_grad");
  }
}

/// The value in memory of its own, at the same place in the autograd graph.
at::Tensor in_own_memory(const at::Tensor& output, bool keep_strides) {
  at::Tensor copy = copied_in_transfer_layout(output, keep_strides);
  if (output.requires_grad())
    torch::autograd::impl::set_gradient_edge(copy, torch::autograd::impl::gradient_edge(output));
  return copy;
}

void require_scalar(const at::Tensor& loss, const std::string& name, int microbatch) {
  if (!loss.defined() || loss.numel() != 1)
    throw InputError("engine: " + name + " of micro-batch " + std::to_string(microbatch) + " is " +
                     graph::describe(loss) + "; a scalar is needed");
}

}  // namespace

void Step::receive_forward(int stage, int microbatch) {
  if (!plan_.plan.enters(stage, microbatch)) return;
  MicrobatchState& state = state_of(stage, microbatch);
  const Plan& plan = plan_.plan;
  state.pending_inputs.resize(plan.pipe(microbatch).stages[stage].graph.inputs.size());
  for (int c : plan.incoming[stage]) {
    const split::Boundary& boundary = plan.boundary(c, microbatch);
    if (context_.is_local(boundary.producer, microbatch)) continue;
    state.pending_inputs[plan.channels[c].consumer_input] = courier_.post_receive(
        boundary, context_.rank_of(boundary.producer, microbatch), plan.forward_tag(c, microbatch));
  }
}

void Step::take_inputs(int stage, int microbatch) {
  MicrobatchState& state = state_of(stage, microbatch);
  const Plan& plan = plan_.plan;
  state.inputs.clear();
  if (stage == 0) split::append_given(batch_.inputs[microbatch], state.inputs);
  state.inputs.resize(plan.pipe(microbatch).stages[stage].graph.inputs.size());
  for (int c : plan.incoming[stage]) {
    const split::Boundary& boundary = plan.boundary(c, microbatch);
    const int i = plan.channels[c].consumer_input;
    at::Tensor& input = state.inputs[i];
    if (context_.is_local(boundary.producer, microbatch)) {
      input = in_transfer_layout(live_output(boundary, microbatch), context_.options.keep_strides);
      consumed(boundary, microbatch);
    } else {
      input = courier_.receive(state.pending_inputs[i], [&] {
        return place(stage, microbatch) + ", value '" + boundary.name + "' " +
               graph::describe(boundary.value.dtype, boundary.value.sizes);
      });
    }
    input.requires_grad_(training_ && boundary.value.requires_grad);
    if (context_.options.observer)
      context_.options.observer->on_boundary_input(stage, microbatch, boundary.name, input);
  }
}

void Step::forward(int stage, int microbatch) {
  if (!plan_.plan.enters(stage, microbatch)) return;
  MicrobatchState& state = state_of(stage, microbatch);
  const split::Pipe& pipe = plan_.plan.pipe(microbatch);
  const bool last = plan_.plan.ends_with(stage, microbatch);
  take_inputs(stage, microbatch);
  compute(stage, microbatch, [&](StageRunner& runner) {
    runner.forward(microbatch, state.inputs, state.outputs);
    take_local_losses(stage, microbatch);
    if (last) compute_loss(stage, microbatch);
  });
  check_outputs(plan_.plan, stage, microbatch, plan_.backward, state.outputs);
  separate_from_shards(stage, microbatch);
  state.remaining_consumers =
      stage_of(stage).consumers[context_.replica_of(microbatch)][plan_.plan.variants[microbatch]];
  if (last)
    for (const at::Tensor& output : state.outputs)
      result_.outputs[microbatch].push_back(output.defined() ? output.detach() : output);
  if (context_.options.observer)
    for (int b : pipe.stages[stage].outputs)
      context_.options.observer->on_forward(stage, microbatch, pipe.boundaries[b].name,
                                            state.outputs[pipe.boundaries[b].output].detach());
  if (plan_.backward) return;
  state.inputs.clear();
  state.loss.reset();
  state.local_losses.clear();
  if (last) state.outputs.clear();
}

/// A parameter, or a view of one, that leaves the stage: RESHARD overwrites its memory while others still read it.
void Step::separate_from_shards(int stage, int microbatch) {
  const ParameterShards* shards = shards_of(stage);
  if (shards == nullptr) return;
  const split::Pipe& pipe = plan_.plan.pipe(microbatch);
  for (int b : pipe.stages[stage].outputs) {
    at::Tensor& output = state_of(stage, microbatch).outputs[pipe.boundaries[b].output];
    if (shards->divides(output)) output = in_own_memory(output, context_.options.keep_strides);
  }
}

void Step::take_local_losses(int stage, int microbatch) {
  const split::Pipe& pipe = plan_.plan.pipe(microbatch);
  if (pipe.local_losses.empty()) return;
  MicrobatchState& state = state_of(stage, microbatch);
  result_.local_losses.resize(context_.schedule.microbatches);
  std::vector<at::Tensor>& losses = result_.local_losses[microbatch];
  for (const split::LocalLoss& local : pipe.local_losses) {
    if (local.stage != stage) continue;
    at::Tensor& made = state.outputs[local.output];
    at::Tensor loss = context_.options.local_loss ? context_.options.local_loss(made) : made;
    const std::string name = "local loss " + std::to_string(local.model_output);
    require_scalar(loss, name, microbatch);
    require_own_leaves(loss, name, stage, microbatch);
    // None among the outputs of the last stage, as the losses of other stages: the number of stages must not matter.
    if (plan_.plan.ends_with(stage, microbatch)) made.reset();
    losses.resize(std::max(losses.size(), static_cast<size_t>(local.model_output) + 1));
    losses[local.model_output] = loss.detach();
    state.local_losses.push_back(std::move(loss));
  }
}

void Step::compute_loss(int stage, int microbatch) {
  if (!context_.options.loss) return;
  MicrobatchState& state = state_of(stage, microbatch);
  try {
    state.loss = context_.options.loss(state.outputs, targets(microbatch));
  } catch (const std::exception& error) {
    throw InputError("engine: the loss of micro-batch " + std::to_string(microbatch) + ": " + graph::error_text(error));
  }
  if (!state.loss.defined() && !plan_.backward) return;
  require_scalar(state.loss, "the loss", microbatch);
  require_own_leaves(state.loss, "the loss", stage, microbatch);
  result_.losses[microbatch] = state.loss.detach();
}

/// In the first step of a plan: a loss function uses the same tensors in each.
void Step::require_own_leaves(const at::Tensor& loss, const std::string& name, int stage, int microbatch) {
  if (!plan_.backward || plan_.checked_losses) return;
  if (const std::optional<at::Tensor> leaf =
          foreign_leaf(loss, state_of(stage, microbatch).outputs, *stage_of(stage).state))
    throw InputError("engine: " + name + " of micro-batch " + std::to_string(microbatch) + " depends on a tensor " +
                     graph::describe(*leaf) + " that requires a gradient and is no parameter of stage " +
                     std::to_string(stage) +
                     ", which computes it; register it in the model, name it in SplitOptions::loss_parameters and read "
                     "it in Engine::states(), or detach it");
}

/// The value for one of its consumers.
const at::Tensor& Step::live_output(const split::Boundary& boundary, int microbatch) {
  const at::Tensor& output = state_of(boundary.producer, microbatch).outputs[boundary.output];
  PLUMBLINE_CHECK(output.defined() && !backward::is_released(output),
                  place(boundary.producer, microbatch) + ", value '" + boundary.name + "' was released");
  return output;
}

/// Called after a consumer has received the value. After the last one, the stage releases its share of the memory: the
/// backward begins at the value's place in the autograd graph.
void Step::consumed(const split::Boundary& boundary, int microbatch) {
  MicrobatchState& state = state_of(boundary.producer, microbatch);
  at::Tensor& output = state.outputs[boundary.output];
  if (--state.remaining_consumers[boundary.output] > 0 || !context_.options.release_outputs) return;
  if (!plan_.backward)
    output.reset();
  else if (!context_.options.weight_work)
    output = boundary.has_gradient && output.requires_grad() ? backward::released_output(output) : at::Tensor();
}

void Step::send_forward(int stage, int microbatch) {
  const Plan& plan = plan_.plan;
  const bool keep_strides = context_.options.keep_strides;
  // One tensor serves all consumers of a value: channels are ascending by boundary.
  int sent_boundary = -1;
  OutgoingTensor outgoing;
  for (int c : plan.outgoing[stage]) {
    const Channel& channel = plan.channels[c];
    if (!plan.carries(c, microbatch)) continue;
    if (context_.is_local(channel.consumer_stage, microbatch)) continue;
    if (channel.boundary != sent_boundary) {
      sent_boundary = channel.boundary;
      const split::Boundary& boundary = plan.boundary(c, microbatch);
      outgoing = make_outgoing(in_transfer_layout(live_output(boundary, microbatch), keep_strides), keep_strides);
      consumed(boundary, microbatch);
    }
    courier_.send({stage, schedule::ActionType::SEND_F, microbatch}, outgoing,
                  context_.rank_of(channel.consumer_stage, microbatch), plan.forward_tag(c, microbatch));
  }
}

}  // namespace plumbline::engine
