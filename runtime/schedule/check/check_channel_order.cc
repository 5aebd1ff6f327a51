#include <map>

#include "runtime/schedule/check/check_parts.h"
#include "runtime/schedule/check/replay.h"

namespace plumbline::schedule {
namespace {

// One end of a message: the message's identity and the position of its action. Value and gradient of an edge and
// micro-batch need no distinction: they use opposite channels.
struct MessageEnd {
  StageEdge edge;
  int microbatch = 0;
  int position = 0;

  bool meets(const MessageEnd& other) const { return edge == other.edge && microbatch == other.microbatch; }
};

struct Channel {
  std::vector<MessageEnd> sent, received;
};

using Channels = std::map<std::pair<int, int>, Channel>;  // by sending and receiving rank

void add_ends(const Schedule& schedule, const StageGraph& graph, const Place& step, Channels& channels) {
  const Action& action = schedule.ranks[step.rank][step.position];
  const int m = action.microbatch;
  if (!is_send(action.type) && !is_receive(action.type)) return;
  if (action.stage < 0 || action.stage >= schedule.stages || m < 0 || m >= schedule.microbatches) return;
  if (schedule.rank_of(action.stage, m) != step.rank) return;
  const bool to_outputs = action.type == ActionType::SEND_F || action.type == ActionType::RECV_B;
  for (int other : to_outputs ? graph.outputs(action.stage) : graph.inputs(action.stage)) {
    const int other_rank = schedule.rank_of(other, m);
    if (other_rank == step.rank) continue;
    const StageEdge edge = to_outputs ? StageEdge{action.stage, other} : StageEdge{other, action.stage};
    const MessageEnd end{edge, m, step.position};
    if (is_send(action.type)) {
      channels[{step.rank, other_rank}].sent.push_back(end);
    } else {
      channels[{other_rank, step.rank}].received.push_back(end);
    }
  }
}

}  // namespace

void check_channel_order(const Schedule& schedule, const StageGraph& graph, CheckReport& report) {
  Channels channels;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (std::size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
      add_ends(schedule, graph, {static_cast<int>(rank), static_cast<int>(i)}, channels);
    }
  }
  for (const auto& [ranks, channel] : channels) {
    const auto& [sent, received] = channel;
    std::size_t i = 0;
    while (i < sent.size() && i < received.size() && sent[i].meets(received[i])) ++i;
    if (i == sent.size() && i == received.size()) continue;
    report.add(
        "channel from rank " + std::to_string(ranks.first) + " to rank " + std::to_string(ranks.second) + ", message " +
        std::to_string(i) + ": " +
        (i < sent.size() ? describe_position(schedule, {ranks.first, sent[i].position}) : "no send") + " meets " +
        (i < received.size() ? describe_position(schedule, {ranks.second, received[i].position}) : "no receive"));
  }
}

}  // namespace plumbline::schedule
