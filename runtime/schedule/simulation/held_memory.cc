#include "runtime/schedule/simulation/held_memory.h"

#include <algorithm>
#include <numeric>

namespace plumbline::schedule {
namespace {

using enum ActionType;

std::uint64_t slot_of(const Action& action) {
  return static_cast<std::uint64_t>(action.stage) << 32 | static_cast<std::uint32_t>(action.microbatch);
}

bool ends_backward(const Action& action) { return action.type == B || action.type == W; }

}  // namespace

HeldMemory::HeldMemory(const Schedule& compute, const StepCosts& costs, const SkipTraffic& traffic, bool curves)
    : compute_(compute),
      costs_(costs),
      traffic_(traffic),
      curves_(curves),
      forward_only_(!has_backward(compute)),
      offloads_(has_offload(compute)),
      later_(traffic.holds() || offloads_),
      held_(compute.ranks.size()),
      peak_live_(compute.ranks.size()),
      peak_(compute.ranks.size()) {
  if (curves) memory_.resize(compute.ranks.size());
  if (!later_) return;
  changes_.resize(compute.ranks.size());
  for (const auto& actions : compute.ranks) moments_.emplace_back().reserve(actions.size());
}

void HeldMemory::unit(int rank, std::span<const Action> members, double begin, double end) {
  Held& held = held_[rank];
  for (const Action& member : members) begin_one(held, member);
  if (!offloads_) peak_live_[rank] = std::max(peak_live_[rank], held.live);
  if (!later_) {
    peak_[rank] = std::max(peak_[rank], held.bytes);
    note(rank, held, begin);
  }
  for (const Action& member : members) end_one(held, member);
  if (!later_) {
    if (held.live == 0) held.bytes = 0;  // discards the rounding error
    note(rank, held, end);
    return;
  }
  for (const Action& member : members) {
    if (offloads_ && member.type == I) halved_.insert(slot_of(member));
    moments_[rank].push_back(member.type == F ? begin : end);
    if (traffic_.holds() && member.type == F) stash_within(rank, member, end);
  }
}

// The tensors that a forward stashes for stages of its own rank and, in a forward-only step, the end of those it pops.
void HeldMemory::stash_within(int rank, const Action& action, double end) {
  for (const Stash& stash : traffic_.stashed(action.stage)) {
    if (compute_.rank_of(stash.edge.to, action.microbatch) == rank) changes_[rank].push_back({end, stash.bytes, 1, 0});
  }
  if (!forward_only_) return;
  for (const Stash& stash : traffic_.popped(action.stage)) changes_[rank].push_back({end, -stash.bytes, -1, 0});
}

void HeldMemory::message(const StageEdge& edge, int from_rank, int to_rank, double made, double carried, double there) {
  const double bytes = traffic_.skipped(edge.from, edge.to);
  if (bytes == 0) return;
  if (carried > made) {
    changes_[from_rank].push_back({made, bytes, 1, 0});
    changes_[from_rank].push_back({carried, -bytes, -1, 0});
  }
  changes_[to_rank].push_back({there, bytes, 1, 0});
}

void HeldMemory::on_host(int rank, const Action& action, double time) {
  const StageMemory& memory = of_stage(costs_.memory, action.stage);
  const double bytes =
      halved_.contains(slot_of(action)) ? memory.weight_part.value_or(memory.activation) : memory.activation;
  const int sign = action.type == OFFLOAD ? -1 : 1;
  changes_[rank].push_back({time, sign * bytes, 0, sign});
}

void HeldMemory::finish(Simulation& simulation) {
  if (later_) {
    for (std::size_t rank = 0; rank < held_.size(); ++rank) sum_up(static_cast<int>(rank));
  }
  simulation.timeline.peak_live = std::move(peak_live_);
  simulation.peak_memory = std::move(peak_);
  simulation.memory = std::move(memory_);
}

void HeldMemory::begin_one(Held& held, const Action& action) const {
  if (action.type != F) return;
  ++held.live;
  held.bytes += of_stage(costs_.memory, action.stage).activation;
}

void HeldMemory::end_one(Held& held, const Action& action) const {
  const StageMemory& memory = of_stage(costs_.memory, action.stage);
  const double weight_part = memory.weight_part.value_or(memory.activation);
  if (ends_backward(action)) --held.live;
  if (action.type == B) held.bytes -= memory.activation;
  if (action.type == I) held.bytes -= memory.activation - weight_part;
  if (action.type == W) held.bytes -= weight_part;
}

void HeldMemory::let_go_popped(Held& held, const Action& action) const {
  for (const Stash& stash : traffic_.popped(action.stage)) {
    if (ends_backward(action)) --held.skipped;
    if (action.type == B) held.bytes -= stash.bytes;
    if (action.type == I) held.bytes -= stash.bytes - stash.weight_part;
    if (action.type == W) held.bytes -= stash.weight_part;
  }
}

// Replays the rank's actions, and the changes between them.
void HeldMemory::sum_up(int rank) {
  const std::vector<Action>& actions = compute_.ranks[rank];
  const std::vector<double>& moments = moments_[rank];
  std::vector<std::size_t> order(actions.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto moment = [&](std::size_t action) { return moments[action]; };
  // In a group a backward, which counts at the end, may precede a forward, which counts at the beginning.
  if (!std::ranges::is_sorted(moments)) std::ranges::stable_sort(order, {}, moment);
  std::vector<Change>& changes = changes_[rank];
  std::ranges::stable_sort(changes, {}, &Change::time);
  Held held;
  auto next = order.begin();
  auto change = changes.begin();
  while (next != order.end() || change != changes.end()) {
    double now = next != order.end() ? moment(*next) : change->time;
    if (change != changes.end()) now = std::min(now, change->time);
    // Applies all changes of a moment before the peak is updated: memory freed then is not held beside new memory.
    for (; next != order.end() && moment(*next) == now; ++next) {
      const Action& action = actions[*next];
      begin_one(held, action);
      end_one(held, action);
      if (traffic_.holds() && action.type != F) let_go_popped(held, action);
    }
    for (; change != changes.end() && change->time == now; ++change) {
      held.bytes += change->bytes;
      held.skipped += change->tensors;
      held.live += change->live;
    }
    if (held.live == 0 && held.skipped == 0) held.bytes = 0;  // discards the rounding error
    peak_[rank] = std::max(peak_[rank], held.bytes);
    if (offloads_) peak_live_[rank] = std::max(peak_live_[rank], held.live);
    note(rank, held, now);
  }
}

void HeldMemory::note(int rank, const Held& held, double time) {
  if (!curves_) return;
  std::vector<MemoryPoint>& curve = memory_[rank];
  if (!curve.empty() && curve.back().bytes == held.bytes) return;
  if (!curve.empty() && curve.back().time == time) {
    // At any one moment, memory is freed first.
    curve.back().bytes = held.bytes;
    return;
  }
  curve.push_back({time, held.bytes});
}

}  // namespace plumbline::schedule
