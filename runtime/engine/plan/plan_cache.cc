#include "runtime/engine/plan/plan_cache.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "runtime/engine/plan/shape_agreement.h"
#include "runtime/engine/plan/step_traffic.h"
#include "runtime/engine/stage/stage_trace.h"
#include "runtime/engine/stage/written_attributes.h"
#include "runtime/error.h"
#include "runtime/schedule/check/check.h"
#include "runtime/schedule/lowering/lower.h"
#include "runtime/schedule/lowering/replica_actions.h"
#include "runtime/schedule/stage_graph.h"
#include "runtime/split/materialize.h"

namespace plumbline::engine {
namespace {

/// The actions of an evaluation. The transfers of a lowered schedule keep their places: the rest of a valid order is
/// valid. If all micro-batches leave early, the transfers of stages that exchange nothing are left out.
schedule::Schedule forwards_only(const schedule::Schedule& schedule, const split::Pipe& pipe) {
  using enum schedule::ActionType;
  const schedule::StageGraph graph(schedule.stages, stage_edges(pipe));
  const auto is_needed = [&](const schedule::Action& transfer) {
    const int stage = transfer.stage, m = transfer.microbatch;
    const bool in_range = stage >= 0 && stage < schedule.stages && m >= 0 && m < schedule.microbatches;
    if (pipe.num_stages() == schedule.stages || !in_range) return true;  // require_valid() checks it
    return schedule::carries(schedule, graph, transfer.type == RECV_F ? RECV_F : SEND_F, stage, m);
  };
  const auto serves = [&](const schedule::Action& action) {
    if (action.type == F || action.type == UNSHARD || action.type == RESHARD) return true;
    return (action.type == SEND_F || action.type == RECV_F || action.type == WAIT_SEND_F) && is_needed(action);
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
        if (serves(actions[i])) kept.push_back(actions[i]);
      if (kept.size() > before) kept.back().overlaps_next = false;
    }
  }
  return out;
}

/// By graph output of `stage` in this replica and pipe: its number of consumers (StepPlan::Stage::consumers).
std::vector<int> count_consumers(const EngineContext& context, const Plan& plan, int stage, int replica, size_t pipe) {
  const split::Pipe& of_one = plan.pipes[pipe];
  if (stage >= of_one.num_stages()) return {};
  std::vector<int> count(of_one.stages[stage].graph.outputs.size());
  int sent_boundary = -1;
  for (int c : plan.outgoing[stage]) {
    const Channel& channel = plan.channels[c];
    const int boundary = plan.boundary_of[pipe][c];
    if (boundary < 0) continue;
    const schedule::Schedule& schedule = context.schedule;
    const bool local =
        schedule.rank_of_stage[replica * schedule.stages + channel.consumer_stage] == context.transport.rank();
    if (!local && channel.boundary == sent_boundary) continue;
    if (!local) sent_boundary = channel.boundary;
    ++count[of_one.boundaries[boundary].output];
  }
  return count;
}

void refuse_written_buffers(const schedule::Schedule& schedule, const split::Pipe& pipe) {
  if (schedule.replicas() == 1) return;
  for (int stage = 0; stage < pipe.num_stages(); ++stage) {
    const graph::Graph& graph = pipe.stages[stage].graph;
    const std::set<graph::ValueId> written = written_attributes(graph);
    for (const graph::Attribute& attribute : graph.attributes)
      if (written.contains(attribute.value))
        throw InputError(
            "engine: the forward of stage " + std::to_string(stage) + " writes '" + attribute.name +
            "', and schedule " + schedule.name + " has " + std::to_string(schedule.replicas()) +
            " replicas, of which each would see its own micro-batches only; take a schedule of one replica");
  }
}

/// The schedule with its transfers, and with actions of whole stages if `options` ask for them; checked against the
/// model's edges.
schedule::Schedule lowered_for(const split::Pipe& pipe, const schedule::Schedule& schedule,
                               const schedule::ReplicaOptions& replicas, bool backward) {
  schedule::Schedule lowered = schedule;
  if (!schedule::has_communication(lowered)) lowered = schedule::with_replica_actions(lowered, replicas);
  if (!backward) lowered = forwards_only(lowered, pipe);
  const std::vector<schedule::StageEdge> edges = stage_edges(pipe);
  if (!schedule::has_transport(lowered)) lowered = schedule::lower(lowered, edges);
  schedule::require_valid(lowered, edges, {.forward_only = !backward, .lowered = true});
  return lowered;
}

std::vector<char> offloaded_slots(const EngineContext& context, const std::vector<schedule::Action>& actions) {
  std::vector<char> offloaded;
  for (const schedule::Action& action : actions) {
    if (action.type != schedule::ActionType::OFFLOAD) continue;
    offloaded.resize(context.stages.size() * context.schedule.microbatches);
    offloaded[context.index_of(action.stage) * context.schedule.microbatches + action.microbatch] = true;
  }
  return offloaded;
}

/// Copies a parameter whose tensor another stage in `states` has: a pipe that ended early may have used it there only.
void separate(at::Tensor& parameter, const std::string& name, const std::map<int, split::StageState>& states) {
  const c10::NoGradGuard no_grad;
  for (const auto& [stage, state] : states) {
    const auto other = state.parameters.find(name);
    if (other == state.parameters.end() || !other->second.is_same(parameter)) continue;
    parameter = parameter.clone().requires_grad_(parameter.requires_grad());
  }
}

void require_tags(const EngineContext& context, const Plan& plan) {
  // Strides travel under separate tags.
  const int64_t tags =
      (context.options.keep_strides ? 2 : 1) * plan.tag_count() + CopyTags::count(context.schedule.stages);
  if (tags > context.transport.max_tag())
    throw InputError("engine: " + std::to_string(plan.channels.size()) + " boundary values times " +
                     std::to_string(context.schedule.microbatches) +
                     " micro-batches need more tags than the transport's " +
                     std::to_string(context.transport.max_tag()) + "; use fewer micro-batches");
}

}  // namespace

StepPlan& PlanCache::plan_for(bool training, const std::vector<std::vector<at::Tensor>>& microbatches) {
  key_.assign(1, training);
  for (const std::vector<at::Tensor>& inputs : microbatches) append_shapes(inputs, key_);
  auto known = plans_.find(key_);
  if (known == plans_.end()) {
    auto made = make(training, microbatches);
    // Ranks see the same shapes, so they evict the same plan and compare each new one together.
    if (plans_.size() == kMaxPlans)
      plans_.erase(std::ranges::min_element(plans_, {}, [](const auto& entry) { return entry.second.used; }));
    known = plans_.emplace(key_, Entry{std::move(made)}).first;
  }
  known->second.used = ++steps_;
  return *known->second.plan;
}

std::unique_ptr<StepPlan> PlanCache::make(bool training, const std::vector<std::vector<at::Tensor>>& microbatches) {
  auto made = std::make_unique<StepPlan>();
  made->plan = make_plan(source_, training, microbatches);
  const split::Pipe& pipe = made->plan.pipes.front();
  const schedule::Schedule& schedule = context_.schedule;
  const bool has_all_stages = pipe.num_stages() == schedule.stages;
  const bool all_leave_early = !training && pipe.ends_early && pipe.num_stages() < schedule.stages;
  if (!has_all_stages && !all_leave_early)
    throw InputError("engine: the schedule has " + std::to_string(schedule.stages) +
                     " stages, the model's split points make " + std::to_string(pipe.num_stages()));
  made->backward = training && context_.options.loss;
  refuse_written_buffers(schedule, pipe);
  made->actions = std::move(
      lowered_for(pipe, schedule, context_.options.replicas, made->backward).ranks[context_.transport.rank()]);
  made->offloaded = offloaded_slots(context_, made->actions);
  require_tags(context_, made->plan);
  if (has_all_stages) check_recompute(context_.options.recompute, pipe);
  add_states(pipe);
  for (const split::Pipe& variant : made->plan.pipes) refuse_written_copies(variant);
  std::map<int, std::vector<std::string>> choices;
  for (int stage : context_.stages) choices.emplace(stage, add_stage(*made, stage));
  made->copies = parameter_copies(context_.states, stages_with_, schedule);
  add_shards(*made);
  const auto deadline = [&] { return transport::Deadline::after(context_.options.timeout); };
  check_with_peers(made->plan, context_.transport, deadline());
  // Called even if this rank does not partition: another one may.
  if (made->backward && schedule.replicas() > 1) check_same_choices(choices, context_.transport, deadline());
  made->traffic = context_.transport.agree_on_traffic(step_traffic(context_, made->plan, made->actions), deadline());
  return made;
}

/// A pipe that ends early lacks stages, and parameters that its last stage uses behind the exit: the first pipe with
/// all stages completes the states.
void PlanCache::add_states(const split::Pipe& pipe) {
  if (has_whole_states_) return;
  const bool has_all_stages = pipe.num_stages() == context_.schedule.stages;
  // The pipe says which parameters its stages share; those that only pipes which ended early use elsewhere are found in
  // the graphs.
  const bool by_graphs = !has_all_stages || !stages_with_.empty();
  for (int stage = 0; stage < pipe.num_stages(); ++stage)
    for (const graph::Attribute& attribute : pipe.stages[stage].graph.attributes)
      if (attribute.kind == graph::AttributeKind::Buffer ||
          (attribute.kind == graph::AttributeKind::Parameter &&
           (by_graphs || std::ranges::binary_search(context_.stages, stage))))
        stages_with_[attribute.name].insert(stage);
  for (const split::SharedParameter& shared : pipe.shared)
    stages_with_[shared.name].insert(shared.stages.begin(), shared.stages.end());
  for (int stage : context_.stages) {
    split::StageState& state = context_.states[stage];
    if (stage >= pipe.num_stages()) continue;
    split::StageState made = split::make_stage_state(pipe, stage, context_.options.device);
    for (auto& parameter : made.parameters)
      if (!state.parameters.contains(parameter.first)) separate(parameter.second, parameter.first, context_.states);
    state.parameters.merge(made.parameters);
    state.buffers.merge(made.buffers);
  }
  has_whole_states_ = has_all_stages;
}

/// In a plan that writes a buffer, the stages behind receive the written value. In a plan that does not, each stage
/// that uses the buffer has a copy, which would never see the writes of the other plan.
void PlanCache::refuse_written_copies(const split::Pipe& pipe) const {
  for (int stage = 0; stage < pipe.num_stages(); ++stage) {
    const graph::Graph& graph = pipe.stages[stage].graph;
    const std::set<graph::ValueId> written = written_attributes(graph);
    for (const graph::Attribute& attribute : graph.attributes) {
      const auto found = stages_with_.find(attribute.name);
      if (!written.contains(attribute.value) || found == stages_with_.end()) continue;
      const std::set<int>& with = found->second;
      const auto other = std::ranges::find_if(with, [&](int each) { return each != stage; });
      if (other == with.end() || !with.contains(stage)) continue;  // bind() refuses a stage without the buffer
      throw InputError("engine: the forward of stage " + std::to_string(stage) + " writes '" + attribute.name +
                       "', of which stage " + std::to_string(*other) +
                       " has a copy since a step that did not write it; the copy would keep the old values; use it "
                       "in one stage only, or train with an engine that has not evaluated");
    }
  }
}

/// Returns the partitioner's choices, by variant.
std::vector<std::string> PlanCache::add_stage(StepPlan& made, int stage) {
  Plan& plan = made.plan;
  const EngineOptions& options = context_.options;
  const split::StageState& state = context_.states.at(stage);
  std::vector<const graph::Graph*> graphs;
  std::vector<std::vector<char>> has_gradient;
  static const graph::Graph nothing;  // for micro-batches that left the pipeline before
  for (split::Pipe& pipe : plan.pipes) {
    if (stage >= pipe.num_stages()) {
      has_gradient.emplace_back();
      graphs.push_back(&nothing);
      continue;
    }
    split::bind(pipe.stages[stage].graph, state, options.device);
    has_gradient.push_back(gradients_that_come_back(pipe, stage));
    graphs.push_back(&pipe.stages[stage].graph);
  }
  std::unique_ptr<PartitionedStage> partitioned;
  if (options.remat.on() && made.backward)
    partitioned = std::make_unique<PartitionedStage>(stage, graphs, std::move(has_gradient), options.remat);
  std::vector<std::string> choices = partitioned ? partitioned->choices() : no_choices(graphs.size());
  StepPlan::Stage& added = made.stages.emplace_back();
  added.state = &state;
  added.runner = std::make_unique<GraphStage>(stage, graphs, plan.variants, context_.random, options.recompute,
                                              std::move(partitioned));
  if (options.decorate) added.runner = options.decorate(stage, state, std::move(added.runner));
  added.consumers.resize(context_.schedule.replicas());
  for (int replica = 0; replica < context_.schedule.replicas(); ++replica)
    for (size_t pipe = 0; pipe < plan.pipes.size(); ++pipe)
      added.consumers[replica].push_back(count_consumers(context_, plan, stage, replica, pipe));
  return choices;
}

void PlanCache::add_shards(StepPlan& made) {
  for (size_t i = 0; i < context_.stages.size(); ++i) {
    const int stage = context_.stages[i];
    const auto gathers = [&](const schedule::Action& action) {
      return action.type == schedule::ActionType::UNSHARD && action.stage == stage;
    };
    std::vector<int> ranks = ranks_of_stage(context_.schedule, stage);
    if (ranks.size() == 1 || std::ranges::none_of(made.actions, gathers)) continue;
    std::vector<at::Tensor> others;
    for (const auto& [other, state] : context_.states) {
      for (const auto& [name, buffer] : state.buffers) others.push_back(buffer);
      if (other == stage) continue;
      for (const auto& [name, parameter] : state.parameters) others.push_back(parameter);
    }
    made.stages[i].shards =
        std::make_unique<ParameterShards>(*made.stages[i].state, std::move(others), std::move(ranks),
                                          context_.transport, context_.copy_tags().gather(stage));
  }
}

}  // namespace plumbline::engine
