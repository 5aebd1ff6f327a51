#include "runtime/engine/engine.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "runtime/engine/gradients.h"
#include "runtime/error.h"
#include "runtime/graph/error_text.h"
#include "runtime/microbatch/chunk.h"
#include "runtime/schedule/check.h"
#include "runtime/schedule/lower.h"

namespace plumbline {
namespace {

double now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

/// Adds the time of its scope to a sum.
class Stopwatch {
 public:
  explicit Stopwatch(double& sum) : sum_(sum), begin_(now()) {}
  ~Stopwatch() { sum_ += now() - begin_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& sum_;
  double begin_;
};

Schedule forwards_only(const Schedule& schedule) {
  Schedule out = schedule;
  for (std::vector<Action>& rank : out.ranks)
    std::erase_if(rank, [](const Action& action) { return action.type != ActionType::F; });
  return out;
}

std::string place(int stage, int microbatch) {
  return "stage " + std::to_string(stage) + ", micro-batch " + std::to_string(microbatch);
}

}  // namespace

/// One micro-batch in one of this rank's stages, from its forward to the end of its backward.
struct Engine::Flight {
  std::vector<at::Tensor> inputs;        // by graph input
  std::vector<Arrival> arriving_inputs;  // by graph input
  std::vector<at::Tensor> outputs;       // by graph output
  std::vector<Arrival> arriving_grads;   // by outgoing channel
  std::vector<at::Tensor> input_grads;   // by graph input
  at::Tensor loss;
};

/// What stays from step to step for one mode (training or not) and one list of micro-batch shapes.
struct Engine::Mode {
  Plan plan;
  std::vector<Action> actions;
  std::map<int, std::unique_ptr<StageRunner>> runners;
};

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
  const bool backward = training && options_.loss;
  const Schedule compute = backward ? schedule_ : forwards_only(schedule_);
  const std::vector<StageEdge> edges = stage_edges(plan.pipes.front());
  const Schedule lowered = lower(compute, edges);
  require_valid(lowered, edges, {.forward_only = !backward, .lowered = true});
  mode->actions = lowered.ranks[transport_.rank()];
  // Strides travel under tags of their own.
  const int64_t tags = (options_.keep_strides ? 2 : 1) * plan.tag_count() + shared_tag_count(plan.pipes.front().shared);
  if (tags > transport_.max_tag())
    throw InputError("engine: " + std::to_string(plan.channels.size()) + " boundary values times " +
                     std::to_string(schedule_.microbatches) + " micro-batches need more tags than the transport's " +
                     std::to_string(transport_.max_tag()) + "; use fewer micro-batches");
  check_recompute(options_.recompute, plan.pipes.front());
  for (int stage : my_stages_) {
    if (!states_.contains(stage)) states_.emplace(stage, make_stage_state(plan.pipes.front(), stage));
    std::vector<const Graph*> graphs;
    for (Pipe& pipe : plan.pipes) {
      bind(pipe.stages[stage].graph, states_.at(stage));
      graphs.push_back(&pipe.stages[stage].graph);
    }
    std::unique_ptr<StageRunner> runner =
        std::make_unique<GraphStage>(stage, graphs, plan.variants, random_, options_.recompute);
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
    if (training_ && options_.loss) finish_gradients();
  } catch (...) {
    // Nothing may write into buffers that are about to go.
    transport_.withdraw();
    clear_step();
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
    case ActionType::W:
      break;
  }
  throw InputError("engine: it cannot carry out " + to_string(action) + "; it knows F, B and their transfers");
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
    if (is_local(boundary.producer))
      f.inputs[input] =
          as_it_crosses(flight(boundary.producer, microbatch).outputs[boundary.output], options_.keep_strides);
    else
      f.inputs[input] = take(f.arriving_inputs[input], [&] {
        return place(stage, microbatch) + ", value '" + boundary.name + "' " +
               describe(boundary.value.dtype, boundary.value.sizes);
      });
    f.inputs[input].requires_grad_(training_ && boundary.value.requires_grad);
  }
  {
    const Stopwatch busy(result_.times.busy);
    mode_->runners.at(stage)->forward(microbatch, f.inputs, f.outputs);
    if (stage == schedule_.stages - 1) compute_loss(f, microbatch);
  }
  check_outputs(stage, microbatch, f.outputs);
  if (stage == schedule_.stages - 1)
    for (const at::Tensor& output : f.outputs)
      result_.outputs[microbatch].push_back(output.defined() ? output.detach() : output);
  if (!options_.observer) return;
  for (int b : pipe.stages[stage].outputs)
    options_.observer->on_forward(stage, microbatch, pipe.boundaries[b].name,
                                  f.outputs[pipe.boundaries[b].output].detach());
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
  const Flight& f = flight(stage, microbatch);
  // One tensor serves all consumers of a value: channels are ascending by boundary.
  int sent_boundary = -1;
  Departure departure;
  for (int c : plan.outgoing[stage]) {
    if (is_local(plan.channels[c].consumer_stage)) continue;
    if (plan.channels[c].boundary != sent_boundary) {
      sent_boundary = plan.channels[c].boundary;
      departure = depart(as_it_crosses(f.outputs[plan.boundary(c, microbatch).output], options_.keep_strides),
                         options_.keep_strides);
    }
    send(departure, rank_of(plan.channels[c].consumer_stage), plan.forward_tag(c, microbatch));
  }
}

void Engine::receive_backward(int stage, int microbatch) {
  Flight& f = flight(stage, microbatch);
  const Plan& plan = mode_->plan;
  f.arriving_grads.resize(plan.outgoing[stage].size());
  for (size_t i = 0; i < plan.outgoing[stage].size(); ++i) {
    const int c = plan.outgoing[stage][i];
    const Boundary& boundary = plan.boundary(c, microbatch);
    if (!boundary.has_gradient || is_local(plan.channels[c].consumer_stage)) continue;
    f.arriving_grads[i] =
        expect_value(boundary, rank_of(plan.channels[c].consumer_stage), plan.backward_tag(c, microbatch));
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
    const Boundary& boundary = plan.boundary(c, microbatch);
    if (boundary.output != output) continue;
    at::Tensor part;
    const int consumer = plan.channels[c].consumer_stage;
    if (is_local(consumer)) {
      part = flight(consumer, microbatch).input_grads[plan.channels[c].consumer_input];
    } else {
      part = take(f.arriving_grads[i], [&] {
        return place(stage, microbatch) + ", gradient of '" + boundary.name + "' " +
               describe(boundary.value.dtype, boundary.value.sizes) + " from stage " + std::to_string(consumer);
      });
    }
    sum = sum.defined() ? at::add(sum, part) : part;
  }
  return sum;
}

void Engine::backward(int stage, int microbatch) {
  Flight& f = flight(stage, microbatch);
  const Pipe& pipe = mode_->plan.pipe(microbatch);
  const Stage& part = pipe.stages[stage];
  std::vector<at::Tensor> roots, root_grads;
  if (stage == schedule_.stages - 1) {
    if (f.loss.requires_grad()) {
      roots.push_back(f.loss);
      root_grads.push_back(at::full_like(f.loss, loss_weights_[microbatch]));
    }
  } else {
    for (int b : part.outputs) {
      const Boundary& boundary = pipe.boundaries[b];
      if (!boundary.has_gradient) continue;
      const at::Tensor grad = output_gradient(stage, microbatch, boundary.output);
      if (!f.outputs[boundary.output].requires_grad()) continue;  // the branch taken has no gradient
      roots.push_back(f.outputs[boundary.output]);
      root_grads.push_back(grad);
    }
  }
  f.input_grads.assign(f.inputs.size(), at::Tensor());
  if (!roots.empty()) {
    const Stopwatch busy(result_.times.busy);
    mode_->runners.at(stage)->backward(microbatch, roots, root_grads, f.inputs, f.input_grads);
  }
  // The graph said that a gradient flows here; where autograd found none (a zero derivative) the sum goes on with
  // zeros. Laid out as what comes from another rank is: the bits must not depend on where the producer is.
  for (size_t i = 0; i < part.inputs.size(); ++i) {
    if (!pipe.boundaries[part.inputs[i]].has_gradient) continue;
    at::Tensor& grad = f.input_grads[i];
    if (!grad.defined()) grad = at::zeros_like(f.inputs[i]).detach();
    // Autograd may give an input and a parameter one memory (both behind views); the next backward adds to the
    // parameter.
    if (grad.storage().use_count() > 1) grad = grad.clone();
    grad = as_it_crosses(grad, options_.keep_strides);
  }
  if (options_.observer) {
    for (size_t i = 0; i < part.inputs.size(); ++i)
      if (pipe.boundaries[part.inputs[i]].has_gradient)
        options_.observer->on_backward(stage, microbatch, pipe.boundaries[part.inputs[i]].name, f.input_grads[i]);
    for (const auto& [name, tensor] : states_.at(stage).parameters)
      if (tensor.grad().defined())
        options_.observer->on_partial(stage, microbatch, name, tensor.grad().detach().clone());
  }
  f.outputs.clear();
  f.inputs.clear();
  f.loss = at::Tensor();
}

void Engine::send_backward(int stage, int microbatch) {
  Flight& f = flight(stage, microbatch);
  const Plan& plan = mode_->plan;
  for (int c : plan.incoming[stage]) {
    const Boundary& boundary = plan.boundary(c, microbatch);
    if (!boundary.has_gradient || is_local(boundary.producer)) continue;
    send(depart(f.input_grads[plan.channels[c].consumer_input], options_.keep_strides), rank_of(boundary.producer),
         plan.backward_tag(c, microbatch));
  }
  for (int c : plan.incoming[stage])
    if (!is_local(plan.boundary(c, microbatch).producer)) f.input_grads[plan.channels[c].consumer_input] = at::Tensor();
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
