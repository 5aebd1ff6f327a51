#include "runtime/engine/engine.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "runtime/backward/released_output.h"
#include "runtime/engine/engine_state.h"
#include "runtime/engine/gradients.h"
#include "runtime/error.h"
#include "runtime/graph/error_text.h"
#include "runtime/microbatch/chunk.h"
#include "runtime/schedule/check.h"
#include "runtime/schedule/lower.h"

namespace plumbline {
namespace {

Schedule forwards_only(const Schedule& schedule) {
  Schedule out = schedule;
  for (std::vector<Action>& rank : out.ranks)
    std::erase_if(rank, [](const Action& action) { return action.type != ActionType::F; });
  return out;
}

}  // namespace

Engine::Engine(Transport& transport, Schedule schedule, PipeSource source, EngineOptions options)
    : transport_(transport), schedule_(std::move(schedule)), source_(std::move(source)), options_(std::move(options)) {
  if (static_cast<int>(schedule_.ranks.size()) != transport_.size())
    throw InputError("engine: the schedule is for " + std::to_string(schedule_.ranks.size()) + " ranks, there are " +
                     std::to_string(transport_.size()) + "; make the schedule for as many ranks as the transport has");
  my_stages_ = stages_of_rank(schedule_, transport_.rank());
  random_.run_seed = options_.seed;
  random_.by_microbatch = options_.seed_by_microbatch;
}

Engine::~Engine() = default;

bool Engine::is_local(int stage) const { return rank_of(stage) == transport_.rank(); }

Engine::Flight& Engine::flight(int stage, int microbatch) {
  const auto local = std::lower_bound(my_stages_.begin(), my_stages_.end(), stage) - my_stages_.begin();
  return flights_[local * schedule_.microbatches + microbatch];
}

StepResult Engine::train(const std::vector<at::Tensor>& inputs, const at::Tensor& target) {
  const c10::AutoGradMode grad(true);
  return run(/*training=*/true, inputs, target);
}

StepResult Engine::train(const std::vector<at::Tensor>& positional, const std::map<std::string, at::Tensor>& keyword,
                         const at::Tensor& target) {
  return train(bind_inputs(options_.input_names, positional, keyword), target);
}

std::vector<at::Tensor> Engine::merged_outputs(const StepResult& step) const {
  return merge_outputs(step.outputs, options_.output_chunks);
}

StepResult Engine::evaluate(const std::vector<at::Tensor>& inputs, const at::Tensor& target) {
  const c10::NoGradGuard no_grad;
  return run(/*training=*/false, inputs, target);
}

void Engine::zero_grad() {
  for (const auto& [stage, state] : states_)
    for (const auto& [name, tensor] : state.parameters)
      if (tensor.requires_grad()) tensor.mutable_grad() = at::Tensor();
}

/// By graph output of `stage`: in how many goes its consumers take it (Mode::takers).
std::vector<int> Engine::takers(const Plan& plan, int stage) const {
  std::vector<int> count(plan.pipes.front().stages[stage].graph.outputs.size());
  int sent_boundary = -1;
  for (int c : plan.outgoing[stage]) {
    const Channel& channel = plan.channels[c];
    if (!is_local(channel.consumer_stage) && channel.boundary == sent_boundary) continue;
    if (!is_local(channel.consumer_stage)) sent_boundary = channel.boundary;
    ++count[plan.pipes.front().boundaries[channel.boundary].output];
  }
  return count;
}

Engine::Mode& Engine::mode_for(bool training, const std::vector<std::vector<at::Tensor>>& microbatches) {
  std::string key = training ? "train " : "evaluate ";
  for (const auto& inputs : microbatches)
    for (const at::Tensor& input : inputs) key += describe(input) + (input.requires_grad() ? "* " : " ");
  std::unique_ptr<Mode>& slot = modes_[key];
  if (slot) return *slot;

  auto mode = std::make_unique<Mode>();
  mode->plan = make_plan(source_, training, microbatches);
  Plan& plan = mode->plan;
  if (plan.pipes.front().num_stages() != schedule_.stages)
    throw InputError("engine: the schedule has " + std::to_string(schedule_.stages) +
                     " stages, the model's split points make " + std::to_string(plan.pipes.front().num_stages()));
  mode->backward = training && options_.loss;
  const Schedule compute = mode->backward ? schedule_ : forwards_only(schedule_);
  const std::vector<StageEdge> edges = stage_edges(plan.pipes.front());
  const Schedule lowered = lower(compute, edges);
  require_valid(lowered, edges, {.forward_only = !mode->backward, .lowered = true});
  mode->actions = lowered.ranks[transport_.rank()];
  mode->takers.resize(schedule_.stages);
  for (int stage : my_stages_) mode->takers[stage] = takers(plan, stage);
  // Strides travel under tags of their own.
  const int64_t tags = (options_.keep_strides ? 2 : 1) * plan.tag_count() + shared_tag_count(plan.pipes.front().shared);
  if (tags > transport_.max_tag())
    throw InputError("engine: " + std::to_string(plan.channels.size()) + " boundary values times " +
                     std::to_string(schedule_.microbatches) + " micro-batches need more tags than the transport's " +
                     std::to_string(transport_.max_tag()) + "; use fewer micro-batches");
  for (int stage : my_stages_) {
    if (!states_.contains(stage)) states_.emplace(stage, make_stage_state(plan.pipes.front(), stage));
    std::vector<const Graph*> graphs;
    for (Pipe& pipe : plan.pipes) {
      bind(pipe.stages[stage].graph, states_.at(stage));
      graphs.push_back(&pipe.stages[stage].graph);
    }
    std::unique_ptr<StageRunner> runner = std::make_unique<GraphStage>(stage, graphs, plan.variants, random_);
    if (options_.decorate) runner = options_.decorate(stage, states_.at(stage), std::move(runner));
    mode->runners.emplace(stage, std::move(runner));
  }
  check_with_peers(plan, transport_, Deadline::after(options_.timeout));
  return *(slot = std::move(mode));
}

StepResult Engine::run(bool training, const std::vector<at::Tensor>& inputs, const at::Tensor& target) {
  microbatches_ = split_inputs(options_.input_names, inputs, options_.input_chunks, schedule_.microbatches);
  targets_ = split_target(target, schedule_.microbatches, options_.target_chunk);
  loss_weights_.assign(schedule_.microbatches, 1.0);
  for (size_t i = 0; options_.mean_loss && i < inputs.size(); ++i)
    if (!options_.input_chunks[i].replicate)
      loss_weights_ = mean_loss_weights(inputs[i].size(options_.input_chunks[i].dim), schedule_.microbatches);
  training_ = training;
  mode_ = &mode_for(training, microbatches_);
  flights_.clear();
  flights_.resize(my_stages_.size() * schedule_.microbatches);
  result_ = {};
  if (is_local(schedule_.stages - 1)) {
    result_.outputs.resize(schedule_.microbatches);
    if (options_.loss) result_.losses.resize(schedule_.microbatches);
  }
  GradientStash stash(states_);
  result_.times.begin = now();
  try {
    for (const Action& action : mode_->actions) {
      carry_out(action);
      release_completed_sends();
    }
    finish_sends();
    if (mode_->backward) finish_gradients();
  } catch (...) {
    // Nothing may write into buffers that are about to go.
    transport_.withdraw();
    clear_step();
    for (const auto& [stage, runner] : mode_->runners) runner->drop_halves();
    throw;
  }
  stash.add_back();
  result_.times.end = now();
  clear_step();
  if (training_) ++random_.step;
  return std::move(result_);
}

void Engine::carry_out(const Action& action) {
  switch (action.type) {
    case ActionType::RECV_F:
      return receive_forward(action.stage, action.microbatch);
    case ActionType::F:
      return forward(action.stage, action.microbatch);
    case ActionType::SEND_F:
      return send_forward(action.stage, action.microbatch);
    case ActionType::RECV_B:
      return receive_backward(action.stage, action.microbatch);
    case ActionType::B:
      return backward(action.stage, action.microbatch);
    case ActionType::SEND_B:
      return send_backward(action.stage, action.microbatch);
    case ActionType::I:
      return backward_input(action.stage, action.microbatch);
    case ActionType::W:
      return backward_weight(action.stage, action.microbatch);
  }
}

void Engine::finish_gradients() {
  const Plan& plan = mode_->plan;
  sum_shared_gradients(states_, plan.pipes.front().shared, schedule_.rank_of_stage, transport_,
                       transport_.max_tag() - shared_tag_count(plan.pipes.front().shared),
                       Deadline::after(options_.timeout));
  if (options_.divide_by_microbatches) divide_gradients(states_, schedule_.microbatches);
}

void Engine::clear_step() {
  flights_.clear();
  sends_.clear();
  microbatches_.clear();
  targets_.clear();
}

void Engine::receive_forward(int stage, int microbatch) {
  Flight& f = flight(stage, microbatch);
  const Plan& plan = mode_->plan;
  f.arriving_inputs.resize(plan.pipe(microbatch).stages[stage].graph.inputs.size());
  for (int c : plan.incoming[stage]) {
    const Boundary& boundary = plan.boundary(c, microbatch);
    if (is_local(boundary.producer)) continue;
    f.arriving_inputs[plan.channels[c].consumer_input] =
        expect_value(boundary, rank_of(boundary.producer), plan.forward_tag(c, microbatch));
  }
}

void Engine::forward(int stage, int microbatch) {
  Flight& f = flight(stage, microbatch);
  const Plan& plan = mode_->plan;
  const Pipe& pipe = plan.pipe(microbatch);
  if (stage == 0) f.inputs = microbatches_[microbatch];
  f.inputs.resize(pipe.stages[stage].graph.inputs.size());
  for (int c : plan.incoming[stage]) {
    const Boundary& boundary = plan.boundary(c, microbatch);
    const int input = plan.channels[c].consumer_input;
    if (is_local(boundary.producer)) {
      f.inputs[input] = as_it_crosses(live_output(boundary, microbatch), options_.keep_strides);
      taken(boundary, microbatch);
    } else {
      f.inputs[input] = take(f.arriving_inputs[input], [&] {
        return place(stage, microbatch) + ", value '" + boundary.name + "' " +
               describe(boundary.value.dtype, boundary.value.sizes);
      });
    }
    f.inputs[input].requires_grad_(training_ && boundary.value.requires_grad);
  }
  compute(stage, microbatch, [&](StageRunner& runner) {
    runner.forward(microbatch, f.inputs, f.outputs);
    if (stage == schedule_.stages - 1) compute_loss(f, microbatch);
  });
  check_outputs(stage, microbatch, f.outputs);
  f.takers = mode_->takers[stage];
  if (stage == schedule_.stages - 1)
    for (const at::Tensor& output : f.outputs)
      result_.outputs[microbatch].push_back(output.defined() ? output.detach() : output);
  if (options_.observer)
    for (int b : pipe.stages[stage].outputs)
      options_.observer->on_forward(stage, microbatch, pipe.boundaries[b].name,
                                    f.outputs[pipe.boundaries[b].output].detach());
  if (mode_->backward) return;
  f.inputs.clear();
  f.loss = at::Tensor();
  if (stage == schedule_.stages - 1) f.outputs.clear();
}

/// A value for one of its takers.
const at::Tensor& Engine::live_output(const Boundary& boundary, int microbatch) {
  const at::Tensor& output = flight(boundary.producer, microbatch).outputs[boundary.output];
  PLUMBLINE_CHECK(output.defined() && !is_released(output),
                  place(boundary.producer, microbatch) + ", value '" + boundary.name + "' was released");
  return output;
}

/// After a taker has it. When it was the last, only what the takers made of it holds on to the memory; the backward
/// begins at its place in the autograd graph.
void Engine::taken(const Boundary& boundary, int microbatch) {
  Flight& f = flight(boundary.producer, microbatch);
  at::Tensor& output = f.outputs[boundary.output];
  if (--f.takers[boundary.output] > 0 || !options_.release_outputs) return;
  if (!mode_->backward)
    output = at::Tensor();
  else if (!options_.weight_work)
    output = boundary.has_gradient && output.requires_grad() ? released_output(output) : at::Tensor();
}

void Engine::compute_loss(Flight& f, int microbatch) {
  if (!options_.loss) return;
  try {
    f.loss = options_.loss(f.outputs, targets_[microbatch]);
  } catch (const std::exception& error) {
    throw InputError("engine: the loss of micro-batch " + std::to_string(microbatch) + ": " + error_text(error));
  }
  if (f.loss.numel() != 1)
    throw InputError("engine: the loss of a micro-batch is " + describe(f.loss) + "; a scalar is needed");
  result_.losses[microbatch] = f.loss.detach();
}

void Engine::check_outputs(int stage, int microbatch, const std::vector<at::Tensor>& outputs) const {
  const Pipe& pipe = mode_->plan.pipe(microbatch);
  for (int b : pipe.stages[stage].outputs) {
    const Boundary& boundary = pipe.boundaries[b];
    const at::Tensor& output = outputs[boundary.output];
    if (!output.defined() || output.scalar_type() != boundary.value.dtype || output.sizes() != boundary.value.sizes)
      throw Error(place(stage, microbatch) + ", value '" + boundary.name + "': the stage made " + describe(output) +
                  ", planned was " + describe(boundary.value.dtype, boundary.value.sizes) +
                  " (a value whose size depends on data cannot cross a border)");
  }
}

void Engine::send_forward(int stage, int microbatch) {
  const Plan& plan = mode_->plan;
  // One tensor serves all consumers of a value: channels are ascending by boundary.
  int sent_boundary = -1;
  Departure departure;
  for (int c : plan.outgoing[stage]) {
    if (is_local(plan.channels[c].consumer_stage)) continue;
    if (plan.channels[c].boundary != sent_boundary) {
      sent_boundary = plan.channels[c].boundary;
      const Boundary& boundary = plan.boundary(c, microbatch);
      departure =
          depart(as_it_crosses(live_output(boundary, microbatch), options_.keep_strides), options_.keep_strides);
      taken(boundary, microbatch);
    }
    send(departure, rank_of(plan.channels[c].consumer_stage), plan.forward_tag(c, microbatch));
  }
}

void Engine::send(const Departure& departure, int rank, int64_t tag) {
  const at::Tensor &body = departure.body, &strides = departure.strides;
  sends_.push_back({body, transport_.isend(body.const_data_ptr(), body.nbytes(), rank, tag)});
  if (strides.defined())
    sends_.push_back(
        {strides, transport_.isend(strides.const_data_ptr(), strides.nbytes(), rank, tag + mode_->plan.tag_count())});
}

Arrival Engine::expect_value(const Boundary& boundary, int peer, int64_t tag) {
  return expect(transport_, boundary.value.dtype, boundary.value.sizes, peer, tag, tag + mode_->plan.tag_count(),
                options_.keep_strides);
}

at::Tensor Engine::take(Arrival& arrival, const WaitContext& context) {
  wait(arrival.body_request, context);
  if (arrival.strides.defined()) wait(arrival.strides_request, context);
  return arrived(std::move(arrival));
}

void Engine::wait(Request& request, const WaitContext& context) {
  const Stopwatch waiting(result_.times.waiting);
  try {
    transport_.wait(request, Deadline::after(options_.timeout), context);
  } catch (const TimeoutError&) {
    throw;
  } catch (const PeerError&) {
    throw;
  } catch (const Error& error) {
    throw Error(context.text() + ": " + error.what());  // a message of another size
  }
}

/// Gives the memory of arrived messages back while the step goes on; receivers take them roughly in order.
void Engine::release_completed_sends() {
  size_t done = 0;
  while (done < sends_.size() && transport_.test(sends_[done].request)) ++done;
  sends_.erase(sends_.begin(), sends_.begin() + static_cast<std::ptrdiff_t>(done));
}

void Engine::finish_sends() {
  for (PendingSend& pending : sends_)
    wait(pending.request, [] { return std::string("the end of the step: a value sent was not taken"); });
  sends_.clear();
}

}  // namespace plumbline
