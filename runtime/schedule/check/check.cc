#include "runtime/schedule/check/check.h"

#include <map>

#include "runtime/error.h"
#include "runtime/schedule/check/check_parts.h"
#include "runtime/schedule/check/replay.h"

namespace plumbline::schedule {
namespace {

// Each SEND that does not complete although all ranks reached the end of their lists, so that every existing receive is
// posted. Of the messages of a channel without a receive the first `buffers` are complete: each occupies a buffer.
void find_unreceived_sends(const Schedule& schedule, const StageGraph& graph, const ActionIndex& index, int buffers,
                           CheckReport& report) {
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    std::map<int, int> buffered;  // by receiving rank
    for (std::size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
      const Action& send = schedule.ranks[rank][i];
      if (!is_send(send.type) || !index.in_range(send)) continue;
      const bool forward = send.type == ActionType::SEND_F;
      for (int other : forward ? graph.outputs(send.stage) : graph.inputs(send.stage)) {
        const Action receive{other, forward ? ActionType::RECV_F : ActionType::RECV_B, send.microbatch};
        const int receiver = schedule.rank_of(other, send.microbatch);
        if (receiver == static_cast<int>(rank) || index.position(receive) >= 0) continue;
        if (int& count = buffered[receiver]; count < buffers) {
          ++count;
          continue;
        }
        report.add(describe_position(schedule, {static_cast<int>(rank), static_cast<int>(i)}) +
                   ": never completes, since rank " + std::to_string(receiver) + " never posts " + to_string(receive));
      }
    }
  }
}

void find_deadlocks(const Schedule& schedule, const StageGraph& graph, const ActionIndex& index, const SendModel& model,
                    CheckReport& report) {
  const Replay played = replay(schedule, graph, index, model);
  if (!played.deadlock.empty()) return report.add(played.deadlock);
  if (model.buffers != SendModel::kUnlimited) find_unreceived_sends(schedule, graph, index, model.buffers, report);
}

// Runs `look` on the graph and the index that all checks need, or reports why they cannot be built.
template <typename Look>
std::vector<std::string> examine(const Schedule& schedule, const std::vector<StageEdge>& edges, std::size_t limit,
                                 Look look) {
  if (std::string problem = shape_problem(schedule); !problem.empty()) return {std::move(problem)};
  std::optional<StageGraph> graph;
  try {
    graph.emplace(schedule.stages, edges);
  } catch (const InputError& error) {
    return {error.what()};
  }
  CheckReport report(limit);
  look(*graph, report);
  return report.take();
}

}  // namespace

std::vector<std::string> violations(const Schedule& schedule, const std::vector<StageEdge>& edges,
                                    const CheckOptions& options) {
  return examine(schedule, edges, options.limit, [&](const StageGraph& graph, CheckReport& report) {
    const ActionIndex index(schedule);
    check_actions(schedule, graph, index, options, report);
    check_whole_stages(schedule, report);
    check_offloads(schedule, index, report);
    if (report.empty()) find_deadlocks(schedule, graph, index, options.sends, report);
  });
}

std::vector<std::string> deadlocks(const Schedule& schedule, const std::vector<StageEdge>& edges,
                                   const SendModel& model) {
  return examine(schedule, edges, CheckOptions{}.limit, [&](const StageGraph& graph, CheckReport& report) {
    find_deadlocks(schedule, graph, ActionIndex(schedule), model, report);
  });
}

std::optional<int> fewest_buffers(const Schedule& schedule, const std::vector<StageEdge>& edges, int limit) {
  for (int buffers = 0; buffers <= limit; ++buffers) {
    if (deadlocks(schedule, edges, {.buffers = buffers, .blocking = true}).empty()) return buffers;
  }
  return std::nullopt;
}

std::vector<std::string> channel_order_violations(const Schedule& schedule, const std::vector<StageEdge>& edges) {
  return examine(schedule, edges, CheckOptions{}.limit,
                 [&](const StageGraph& graph, CheckReport& report) { check_channel_order(schedule, graph, report); });
}

void require_valid(const Schedule& schedule, const std::vector<StageEdge>& edges, const CheckOptions& options) {
  const std::vector<std::string> found = violations(schedule, edges, options);
  if (found.empty()) return;
  std::string text = "schedule " + schedule.name + ": " + found.front();
  if (found.size() > 1) text += " (the first of several violations)";
  throw InputError(text);
}

}  // namespace plumbline::schedule
