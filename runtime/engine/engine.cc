#include "runtime/engine/engine.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "runtime/clock.h"
#include "runtime/engine/gradients.h"
#include "runtime/engine/input_gradients.h"
#include "runtime/engine/step/execution.h"
#include "runtime/engine/step/step.h"
#include "runtime/error.h"

namespace plumbline::engine {
namespace {

void refuse_custom_transfers(const CustomFunctions& custom) {
  for (const auto& [type, function] : custom.of_type)
    if (schedule::is_send(type) || schedule::is_receive(type) || schedule::is_wait_send(type) ||
        schedule::is_offload(type))
      throw InputError("engine: " + std::string(to_string(type)) +
                       " cannot be replaced by a custom function; F, B, I, W, UNSHARD, RESHARD, REDUCE_GRAD, "
                       "WAIT_REDUCE_GRAD and groups can");
}

/// Partitioned stages and stores of activations are implemented for the host only.
void refuse_host_parts(const EngineOptions& options, const schedule::Schedule& schedule) {
  if (options.device.is_cpu()) return;
  if (options.remat.on())
    throw InputError("engine: partitioned stages (remat) compute on the CPU only; leave out remat or the device");
  for (const std::vector<schedule::Action>& actions : schedule.ranks)
    if (std::ranges::any_of(actions, [](const schedule::Action& action) { return schedule::is_offload(action.type); }))
      throw InputError("engine: schedule " + schedule.name +
                       " offloads activations, which is implemented for the CPU only; take another schedule");
}

/// The backward of each micro-batch would run on into the program that computed such an input. Micro-batches that were
/// given apart may be views of a leaf, of which each has its own part of that program.
void refuse_computed_inputs(const std::vector<std::string>& names, const std::vector<at::Tensor>& inputs) {
  for (size_t i = 0; i < std::min(names.size(), inputs.size()); ++i)
    if (inputs[i].defined() && inputs[i].requires_grad() && !inputs[i].is_leaf())
      throw InputError("engine: input '" + names[i] +
                       "' is the result of operators that recorded their backward, which would run once for each "
                       "micro-batch; give its detach(), which may require a gradient");
}

int64_t rows_of(const std::string& name, const at::Tensor& input, size_t microbatch, int dim) {
  if (dim < 0 || dim >= input.dim())
    throw InputError("engine: input '" + name + "' of micro-batch " + std::to_string(microbatch) + " has " +
                     std::to_string(input.dim()) + " dimensions, and mean_loss counts rows along dimension " +
                     std::to_string(dim) + " (input_chunks); name the dimension of its rows, or mark it as replicated");
  return input.size(dim);
}

/// Computed from the rows of the last divided input.
std::vector<double> loss_weights(const EngineOptions& options, bool training, const microbatch::Microbatches& batch) {
  std::vector<double> weights(batch.inputs.size(), 1.0);
  if (!options.mean_loss) return weights;
  if (options.mean_count && training) {
    std::vector<double> counts;
    for (size_t m = 0; m < batch.inputs.size(); ++m)
      counts.push_back(options.mean_count(batch.targets.empty() ? microbatch::Targets() : batch.targets[m]));
    return microbatch::mean_loss_weights(counts);
  }
  for (size_t i = std::min(options.input_names.size(), options.input_chunks.size()); i-- > 0;) {
    if (options.input_chunks[i].replicate || !batch.inputs.front()[i].defined()) continue;
    std::vector<double> rows;
    for (size_t m = 0; m < batch.inputs.size(); ++m)
      rows.push_back(
          static_cast<double>(rows_of(options.input_names[i], batch.inputs[m][i], m, options.input_chunks[i].dim)));
    return microbatch::mean_loss_weights(rows);
  }
  return weights;
}

}  // namespace

Engine::Engine(transport::Transport& transport, schedule::Schedule schedule, PipeSource source, EngineOptions options)
    : context_{transport, std::move(schedule), std::move(options), {}, {}, {}}, plans_(context_, std::move(source)) {
  const schedule::Schedule& made = context_.schedule;
  if (static_cast<int>(made.ranks.size()) != transport.size())
    throw InputError("engine: the schedule is for " + std::to_string(made.ranks.size()) + " ranks, there are " +
                     std::to_string(transport.size()) + "; make the schedule for as many ranks as the transport has");
  if (const std::string problem = schedule::shape_problem(made); !problem.empty())
    throw InputError("engine: schedule " + made.name + ": " + problem);
  refuse_custom_transfers(context_.options.custom);
  check_remat(context_.options.remat, context_.options.recompute.on());
  refuse_host_parts(context_.options, made);
  context_.stages = schedule::stages_of_rank(made, transport.rank());
  context_.random.run_seed = context_.options.seed;
  context_.random.by_microbatch = context_.options.seed_by_microbatch;
  context_.random.device = context_.options.device;
}

StepResult Engine::train(const std::vector<at::Tensor>& inputs, const microbatch::Targets& targets) {
  const c10::AutoGradMode grad(true);
  if (context_.options.loss && context_.schedule.microbatches > 1)
    refuse_computed_inputs(context_.options.input_names, inputs);
  microbatch::Microbatches batch = divided(inputs, targets);
  const WholeInputs whole(inputs, context_.options.input_chunks, batch);
  return run(/*training=*/true, batch, &whole);
}

StepResult Engine::train(const microbatch::Microbatches& batch) {
  const c10::AutoGradMode grad(true);
  microbatch::check_microbatches(context_.options.input_names, batch, context_.schedule.microbatches);
  return run(/*training=*/true, batch);
}

StepResult Engine::train(const std::vector<at::Tensor>& positional, const std::map<std::string, at::Tensor>& keyword,
                         const microbatch::Targets& targets) {
  return train(microbatch::bind_inputs(context_.options.input_names, positional, keyword), targets);
}

StepResult Engine::evaluate(const std::vector<at::Tensor>& inputs, const microbatch::Targets& targets) {
  const c10::NoGradGuard no_grad;
  return run(/*training=*/false, divided(inputs, targets));
}

StepResult Engine::evaluate(const microbatch::Microbatches& batch) {
  const c10::NoGradGuard no_grad;
  microbatch::check_microbatches(context_.options.input_names, batch, context_.schedule.microbatches);
  return run(/*training=*/false, batch);
}

std::vector<at::Tensor> Engine::merged_outputs(const StepResult& step) const {
  for (size_t m = 0; m < step.outputs.size(); ++m) {
    if (!step.outputs[m].empty()) continue;
    const int stage = step.ended_with.empty() ? context_.schedule.stages - 1 : step.ended_with[m];
    throw InputError("engine: the outputs of micro-batch " + std::to_string(m) + " are on rank " +
                     std::to_string(context_.rank_of(stage, static_cast<int>(m))) + ", not on rank " +
                     std::to_string(context_.transport.rank()) +
                     "; merge those of all ranks that have some (StepResult::outputs)");
  }
  return microbatch::merge_outputs(step.outputs, context_.options.output_chunks);
}

void Engine::zero_grad() {
  for (const auto& [stage, state] : context_.states)
    for (const auto& [name, tensor] : state.parameters) tensor.mutable_grad() = at::Tensor();
}

double Engine::gradient_norm(Norm norm) const {
  return engine::gradient_norm(context_.states, norm, context_.transport,
                               transport::Deadline::after(context_.options.timeout));
}

void Engine::forget_plans() { plans_.clear(); }

microbatch::Microbatches Engine::divided(const std::vector<at::Tensor>& inputs,
                                         const microbatch::Targets& targets) const {
  const EngineOptions& options = context_.options;
  const int microbatches = context_.schedule.microbatches;
  return {microbatch::split_inputs(options.input_names, inputs, options.input_chunks, microbatches),
          microbatch::split_targets(targets, microbatches, options.target_chunk)};
}

/// `whole`: the inputs that were given undivided, if any.
StepResult Engine::run(bool training, const microbatch::Microbatches& batch, const WholeInputs* whole) {
  std::vector<double> weights = loss_weights(context_.options, training, batch);
  for (double& weight : weights) weight *= context_.options.loss_scale;
  if (context_.lost_parameters)
    throw InputError(
        "engine: a step failed while parameters were sharded, and their parts on other ranks were lost; make a new "
        "engine from a saved state");
  StepPlan& plan = plans_.plan_for(training, batch.inputs);
  Step step(context_, plan, buffers_, training, batch, std::move(weights));
  GradientStash stash(context_.states);
  if (context_.reads_inputs()) {
    stash_inputs(context_.options.input_names, batch, stash);
    if (whole) whole->stash_inputs(context_.options.input_names, stash);
  }
  step.result().times.begin = clock_seconds();
  try {
    step.shard_parameters();
    context_.transport.begin_traffic(plan.traffic.get());
    Execution(step).run();
    step.finish();
    context_.transport.begin_traffic(nullptr);
  } catch (...) {
    // No transfer may write into memory that is about to be freed.
    step.abandon();
    context_.lost_parameters = plan.shards_parameters();
    throw;
  }
  if (whole && context_.reads_inputs()) whole->join_gradients();
  stash.add_back();
  step.result().times.end = clock_seconds();
  if (training) ++context_.random.step;
  return std::move(step.result());
}

}  // namespace plumbline::engine
