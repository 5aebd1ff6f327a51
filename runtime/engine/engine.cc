#include "runtime/engine/engine.h"
#include "runtime/engine/stage_trace.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "runtime/backward/released_output.h"
#include "runtime/engine/engine_state.h"
#include "runtime/engine/gradients.h"
#include "runtime/engine/written_attributes.h"
#include "runtime/error.h"
#include "runtime/graph/error_text.h"
#include "runtime/microbatch/chunk.h"
#include "runtime/schedule/check/check.h"
#include "runtime/schedule/lowering/lower.h"
#include "runtime/split/module_pipe.h"

namespace plumbline::engine {
namespace {

/// What serves an evaluation. Of a lowered schedule the transfers stay where they are: what is left of a valid order is
/// one.
schedule::Schedule forwards_only(const schedule::Schedule& schedule) {
  const auto serves = [](schedule::ActionType type) {
    using enum schedule::ActionType;
    return type == F || type == SEND_F || type == RECV_F || type == WAIT_SEND_F || type == UNSHARD || type == RESHARD;
  };
  schedule::Schedule out = schedule;
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const std::vector<schedule::Action>& actions = schedule.ranks[rank];
    std::vector<schedule::Action>& kept = out.ranks[rank];
    kept.clear();
    for (size_t begin = 0, end = 0; begin < actions.size(); begin = end) {
      end = schedule::group_end(actions, begin);
      const size_t before = kept.size();
      for (size_t i = begin; i < end; ++i)
        if (serves(actions[i].type)) kept.push_back(actions[i]);
      if (kept.size() > before) kept.back().overlaps_next = false;
    }
  }
  return out;
}

}  // namespace

Engine::Engine(transport::Transport& transport, schedule::Schedule schedule, PipeSource source, EngineOptions options)
    : transport_(transport), schedule_(std::move(schedule)), source_(std::move(source)), options_(std::move(options)) {
  if (static_cast<int>(schedule_.ranks.size()) != transport_.size())
    throw InputError("engine: the schedule is for " + std::to_string(schedule_.ranks.size()) + " ranks, there are " +
                     std::to_string(transport_.size()) + "; make the schedule for as many ranks as the transport has");
  if (const std::string problem = schedule::shape_problem(schedule_); !problem.empty())
    throw InputError("engine: schedule " + schedule_.name + ": " + problem);
  refuse_custom_transfers();
  check_remat(options_.remat, options_.recompute.on());
  my_stages_ = schedule::stages_of_rank(schedule_, transport_.rank());
  random_.run_seed = options_.seed;
  random_.by_microbatch = options_.seed_by_microbatch;
}

Engine::~Engine() = default;

Engine::Flight& Engine::flight(int stage, int microbatch) {
  const auto local = std::lower_bound(my_stages_.begin(), my_stages_.end(), stage) - my_stages_.begin();
  return flights_[local * schedule_.microbatches + microbatch];
}

StepResult Engine::train(const std::vector<at::Tensor>& inputs, const at::Tensor& target) {
  const c10::AutoGradMode grad(true);
  return run(/*training=*/true, divided(inputs, target));
}

StepResult Engine::train(const microbatch::Microbatches& batch) {
  const c10::AutoGradMode grad(true);
  return run(/*training=*/true, checked(batch));
}

StepResult Engine::train(const std::vector<at::Tensor>& positional, const std::map<std::string, at::Tensor>& keyword,
                         const at::Tensor& target) {
  return train(microbatch::bind_inputs(options_.input_names, positional, keyword), target);
}

std::vector<at::Tensor> Engine::merged_outputs(const StepResult& step) const {
  for (size_t m = 0; m < step.outputs.size(); ++m)
    if (step.outputs[m].empty())
      throw InputError("engine: the outputs of micro-batch " + std::to_string(m) + " are on rank " +
                       std::to_string(rank_of(schedule_.stages - 1, static_cast<int>(m))) + ", not on rank " +
                       std::to_string(transport_.rank()) +
                       "; merge those of all ranks with the last stage (StepResult::outputs)");
  return microbatch::merge_outputs(step.outputs, options_.output_chunks);
}

StepResult Engine::evaluate(const std::vector<at::Tensor>& inputs, const at::Tensor& target) {
  const c10::NoGradGuard no_grad;
  return run(/*training=*/false, divided(inputs, target));
}

StepResult Engine::evaluate(const microbatch::Microbatches& batch) {
  const c10::NoGradGuard no_grad;
  return run(/*training=*/false, checked(batch));
}

microbatch::Microbatches Engine::divided(const std::vector<at::Tensor>& inputs, const at::Tensor& target) const {
  return {microbatch::split_inputs(options_.input_names, inputs, options_.input_chunks, schedule_.microbatches),
          microbatch::split_target(target, schedule_.microbatches, options_.target_chunk)};
}

microbatch::Microbatches Engine::checked(microbatch::Microbatches batch) const {
  microbatch::check_microbatches(options_.input_names, batch, schedule_.microbatches);
  batch.targets.resize(schedule_.microbatches);
  return batch;
}

/// From the rows of the last input that is divided.
std::vector<double> Engine::loss_weights() const {
  std::vector<double> weights(schedule_.microbatches, 1.0);
  if (!options_.mean_loss) return weights;
  if (options_.mean_count && training_) {
    std::vector<int64_t> counts;
    for (const at::Tensor& target : batch_.targets) counts.push_back(options_.mean_count(target));
    return microbatch::mean_loss_weights(counts);
  }
  for (size_t i = 0; i < std::min(options_.input_names.size(), options_.input_chunks.size()); ++i) {
    if (options_.input_chunks[i].replicate || !batch_.inputs.front()[i].defined()) continue;
    std::vector<int64_t> rows;
    for (const std::vector<at::Tensor>& inputs : batch_.inputs)
      rows.push_back(inputs[i].size(options_.input_chunks[i].dim));
    weights = microbatch::mean_loss_weights(rows);
  }
  return weights;
}

void Engine::zero_grad() {
  for (const auto& [stage, state] : states_)
    for (const auto& [name, tensor] : state.parameters) tensor.mutable_grad() = at::Tensor();
}

void Engine::forget_plans() { modes_.clear(); }

/// By graph output of `stage` in this replica: in how many goes its consumers take it (Mode::takers).
std::vector<int> Engine::takers(const Plan& plan, int stage, int replica) const {
  std::vector<int> count(plan.pipes.front().stages[stage].graph.outputs.size());
  int sent_boundary = -1;
  for (int c : plan.outgoing[stage]) {
    const Channel& channel = plan.channels[c];
    const bool local =
        schedule_.rank_of_stage[replica * schedule_.stages + channel.consumer_stage] == transport_.rank();
    if (!local && channel.boundary == sent_boundary) continue;
    if (!local) sent_boundary = channel.boundary;
    ++count[plan.pipes.front().boundaries[channel.boundary].output];
  }
  return count;
}

Engine::Mode& Engine::mode_for(bool training, const std::vector<std::vector<at::Tensor>>& microbatches) {
  std::string key = training ? "train " : "evaluate ";
  for (const auto& inputs : microbatches)
    for (const at::Tensor& input : inputs) key += graph::describe(input) + (input.requires_grad() ? "* " : " ");
  std::unique_ptr<Mode>& slot = modes_[key];
  if (slot) return *slot;

  auto mode = std::make_unique<Mode>();
  mode->plan = make_plan(source_, training, microbatches);
  Plan& plan = mode->plan;
  if (plan.pipes.front().num_stages() != schedule_.stages)
    throw InputError("engine: the schedule has " + std::to_string(schedule_.stages) +
                     " stages, the model's split points make " + std::to_string(plan.pipes.front().num_stages()));
  mode->backward = training && options_.loss;
  refuse_written_buffers(plan);
  schedule::Schedule lowered = mode->backward ? schedule_ : forwards_only(schedule_);
  const std::vector<schedule::StageEdge> edges = stage_edges(plan.pipes.front());
  if (!schedule::has_communication(lowered)) lowered = schedule::lower(lowered, edges);
  schedule::require_valid(lowered, edges, {.forward_only = !mode->backward, .lowered = true});
  mode->actions = std::move(lowered.ranks[transport_.rank()]);
  mode->takers.resize(schedule_.replicas());
  for (int replica = 0; replica < schedule_.replicas(); ++replica) {
    mode->takers[replica].resize(schedule_.stages);
    for (int stage : my_stages_) mode->takers[replica][stage] = takers(plan, stage, replica);
  }
  // Strides travel under tags of their own.
  const int64_t tags = (options_.keep_strides ? 2 : 1) * plan.tag_count() + kCopyTags;
  if (tags > transport_.max_tag())
    throw InputError("engine: " + std::to_string(plan.channels.size()) + " boundary values times " +
                     std::to_string(schedule_.microbatches) + " micro-batches need more tags than the transport's " +
                     std::to_string(transport_.max_tag()) + "; use fewer micro-batches");
  check_recompute(options_.recompute, plan.pipes.front());
  std::map<int, std::vector<std::string>> choices;
  for (int stage : my_stages_) {
    if (!states_.contains(stage)) states_.emplace(stage, split::make_stage_state(plan.pipes.front(), stage));
    std::vector<const graph::Graph*> graphs;
    for (split::Pipe& pipe : plan.pipes) {
      split::bind(pipe.stages[stage].graph, states_.at(stage));
      graphs.push_back(&pipe.stages[stage].graph);
    }
    std::unique_ptr<PartitionedStage> partitioned;
    if (options_.remat.on() && mode->backward) {
      partitioned = std::make_unique<PartitionedStage>(
          stage, graphs, gradients_that_come_back(plan.pipes.front(), stage), options_.remat);
    }
    choices.emplace(stage, partitioned ? partitioned->choices() : no_choices(graphs.size()));
    std::unique_ptr<StageRunner> runner =
        std::make_unique<GraphStage>(stage, graphs, plan.variants, random_, options_.recompute, std::move(partitioned));
    if (options_.decorate) runner = options_.decorate(stage, states_.at(stage), std::move(runner));
    mode->runners.emplace(stage, std::move(runner));
  }
  mode->copies = parameter_copies(states_, plan.pipes.front().shared, schedule_);
  check_with_peers(plan, transport_, transport::Deadline::after(options_.timeout));
  // Whether or not this rank partitions: another one may.
  if (mode->backward && schedule_.replicas() > 1)
    check_same_choices(choices, transport_, transport::Deadline::after(options_.timeout));
  return *(slot = std::move(mode));
}

void Engine::refuse_written_buffers(const Plan& plan) const {
  if (schedule_.replicas() == 1) return;
  for (int stage = 0; stage < schedule_.stages; ++stage) {
    const graph::Graph& graph = plan.pipes.front().stages[stage].graph;
    const std::set<graph::ValueId> written = written_attributes(graph);
    for (const graph::Attribute& attribute : graph.attributes)
      if (written.contains(attribute.value))
        throw InputError(
            "engine: the forward of stage " + std::to_string(stage) + " writes '" + attribute.name +
            "', and schedule " + schedule_.name + " has " + std::to_string(schedule_.replicas()) +
            " replicas, of which each would see its own micro-batches only; take a schedule of one replica");
  }
}

StepResult Engine::run(bool training, microbatch::Microbatches batch) {
  batch_ = std::move(batch);
  training_ = training;
  loss_weights_ = loss_weights();
  mode_ = &mode_for(training, batch_.inputs);
  flights_.clear();
  flights_.resize(my_stages_.size() * schedule_.microbatches);
  result_ = {};
  if (options_.trace) result_.trace.reserve(mode_->actions.size());
  if (!my_stages_.empty() && my_stages_.back() == schedule_.stages - 1) {
    result_.outputs.resize(schedule_.microbatches);
    if (options_.loss) result_.losses.resize(schedule_.microbatches);
  }
  GradientStash stash(states_);
  result_.times.begin = now();
  try {
    carry_out_all();
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

void Engine::finish_gradients() {
  sum_copies(states_, mode_->copies, transport_, transport_.max_tag() - kCopyTags,
             transport::Deadline::after(options_.timeout));
  if (options_.divide_by_microbatches) divide_gradients(states_, schedule_.microbatches);
}

void Engine::clear_step() {
  flights_.clear();
  sends_.clear();
  batch_ = {};
}

void Engine::receive_forward(int stage, int microbatch) {
  Flight& f = flight(stage, microbatch);
  const Plan& plan = mode_->plan;
  f.arriving_inputs.resize(plan.pipe(microbatch).stages[stage].graph.inputs.size());
  for (int c : plan.incoming[stage]) {
    const split::Boundary& boundary = plan.boundary(c, microbatch);
    if (is_local(boundary.producer, microbatch)) continue;
    f.arriving_inputs[plan.channels[c].consumer_input] =
        expect_value(boundary, rank_of(boundary.producer, microbatch), plan.forward_tag(c, microbatch));
  }
}

void Engine::forward(int stage, int microbatch) {
  Flight& f = flight(stage, microbatch);
  const Plan& plan = mode_->plan;
  const split::Pipe& pipe = plan.pipe(microbatch);
  if (stage == 0) f.inputs = split::given_inputs(batch_.inputs[microbatch]);
  f.inputs.resize(pipe.stages[stage].graph.inputs.size());
  for (int c : plan.incoming[stage]) {
    const split::Boundary& boundary = plan.boundary(c, microbatch);
    const int input = plan.channels[c].consumer_input;
    if (is_local(boundary.producer, microbatch)) {
      f.inputs[input] = as_it_crosses(live_output(boundary, microbatch), options_.keep_strides);
      taken(boundary, microbatch);
    } else {
      f.inputs[input] = take(f.arriving_inputs[input], [&] {
        return place(stage, microbatch) + ", value '" + boundary.name + "' " +
               graph::describe(boundary.value.dtype, boundary.value.sizes);
      });
    }
    f.inputs[input].requires_grad_(training_ && boundary.value.requires_grad);
    if (options_.observer) options_.observer->on_taken(stage, microbatch, boundary.name, f.inputs[input]);
  }
  compute(stage, microbatch, [&](StageRunner& runner) {
    runner.forward(microbatch, f.inputs, f.outputs);
    if (stage == schedule_.stages - 1) compute_loss(f, microbatch);
  });
  check_outputs(stage, microbatch, f.outputs);
  f.takers = mode_->takers[replica_of(microbatch)][stage];
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
const at::Tensor& Engine::live_output(const split::Boundary& boundary, int microbatch) {
  const at::Tensor& output = flight(boundary.producer, microbatch).outputs[boundary.output];
  PLUMBLINE_CHECK(output.defined() && !backward::is_released(output),
                  place(boundary.producer, microbatch) + ", value '" + boundary.name + "' was released");
  return output;
}

/// After a taker has it. When it was the last, only what the takers made of it holds on to the memory; the backward
/// begins at its place in the autograd graph.
void Engine::taken(const split::Boundary& boundary, int microbatch) {
  Flight& f = flight(boundary.producer, microbatch);
  at::Tensor& output = f.outputs[boundary.output];
  if (--f.takers[boundary.output] > 0 || !options_.release_outputs) return;
  if (!mode_->backward)
    output = at::Tensor();
  else if (!options_.weight_work)
    output = boundary.has_gradient && output.requires_grad() ? backward::released_output(output) : at::Tensor();
}

void Engine::compute_loss(Flight& f, int microbatch) {
  if (!options_.loss) return;
  try {
    f.loss = options_.loss(f.outputs, batch_.targets[microbatch]);
  } catch (const std::exception& error) {
    throw InputError("engine: the loss of micro-batch " + std::to_string(microbatch) + ": " + graph::error_text(error));
  }
  if (!f.loss.defined() && !mode_->backward) return;
  if (!f.loss.defined() || f.loss.numel() != 1)
    throw InputError("engine: the loss of a micro-batch is " + graph::describe(f.loss) + "; a scalar is needed");
  result_.losses[microbatch] = f.loss.detach();
}

void Engine::check_outputs(int stage, int microbatch, const std::vector<at::Tensor>& outputs) const {
  const split::Pipe& pipe = mode_->plan.pipe(microbatch);
  for (int b : pipe.stages[stage].outputs) {
    const split::Boundary& boundary = pipe.boundaries[b];
    const at::Tensor& output = outputs[boundary.output];
    if (!output.defined() || output.scalar_type() != boundary.value.dtype || output.sizes() != boundary.value.sizes)
      throw Error(place(stage, microbatch) + ", value '" + boundary.name + "': the stage made " +
                  graph::describe(output) + ", planned was " +
                  graph::describe(boundary.value.dtype, boundary.value.sizes) +
                  " (a value whose size depends on data cannot cross a border)");
    if (mode_->backward && output.requires_grad() && !boundary.value.requires_grad)
      throw InputError(place(stage, microbatch) + ", value '" + boundary.name +
                       "': it needed no gradient when the stages were cut, and needs one now that other parameters "
                       "require gradients; make a new engine after changing requires_grad");
  }
}

void Engine::send_forward(int stage, int microbatch) {
  const Plan& plan = mode_->plan;
  // One tensor serves all consumers of a value: channels are ascending by boundary.
  int sent_boundary = -1;
  Departure departure;
  for (int c : plan.outgoing[stage]) {
    if (is_local(plan.channels[c].consumer_stage, microbatch)) continue;
    if (plan.channels[c].boundary != sent_boundary) {
      sent_boundary = plan.channels[c].boundary;
      const split::Boundary& boundary = plan.boundary(c, microbatch);
      departure =
          depart(as_it_crosses(live_output(boundary, microbatch), options_.keep_strides), options_.keep_strides);
      taken(boundary, microbatch);
    }
    send({stage, schedule::ActionType::SEND_F, microbatch}, departure,
         rank_of(plan.channels[c].consumer_stage, microbatch), plan.forward_tag(c, microbatch));
  }
}

void Engine::send(const schedule::Action& by, const Departure& departure, int rank, int64_t tag) {
  const at::Tensor &body = departure.body, &strides = departure.strides;
  sends_.push_back({by, body, transport_.isend(body.const_data_ptr(), body.nbytes(), rank, tag)});
  if (strides.defined())
    sends_.push_back(
        {by, strides,
         transport_.isend(strides.const_data_ptr(), strides.nbytes(), rank, tag + mode_->plan.tag_count())});
}

Arrival Engine::expect_value(const split::Boundary& boundary, int peer, int64_t tag) {
  return expect(transport_, boundary.value.dtype, boundary.value.sizes, peer, tag, tag + mode_->plan.tag_count(),
                options_.keep_strides);
}

at::Tensor Engine::take(Arrival& arrival, const transport::WaitContext& context) {
  wait(arrival.body_request, context);
  if (arrival.strides.defined()) wait(arrival.strides_request, context);
  if (options_.trace) action_begin_ = now();
  return arrived(std::move(arrival));
}

void Engine::wait(transport::Request& request, const transport::WaitContext& context) {
  const Stopwatch waiting(result_.times.waiting);
  try {
    transport_.wait(request, transport::Deadline::after(options_.timeout), context);
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

/// Until what this one sent has been taken, and no longer.
void Engine::wait_send(const schedule::Action& action) {
  const schedule::Action send{
      action.stage,
      action.type == schedule::ActionType::WAIT_SEND_F ? schedule::ActionType::SEND_F : schedule::ActionType::SEND_B,
      action.microbatch};
  for (PendingSend& pending : sends_) {
    if (pending.by != send) continue;
    wait(pending.request, [&] { return place(action.stage, action.microbatch) + ": what it sent was not taken"; });
    pending.tensor = at::Tensor();
  }
}

void Engine::finish_sends() {
  for (PendingSend& pending : sends_)
    wait(pending.request, [] { return std::string("the end of the step: a value sent was not taken"); });
  sends_.clear();
}

}  // namespace plumbline::engine
