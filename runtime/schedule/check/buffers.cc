#include "runtime/schedule/check/buffers.h"

#include <algorithm>

namespace plumbline::schedule {

Buffers::Buffers(const Schedule& schedule, const StageGraph& graph, int per_channel)
    : schedule_(schedule), graph_(graph), per_channel_(per_channel), first_edge_(schedule.stages) {
  std::size_t edges = 0;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    first_edge_[stage] = edges;
    edges += graph.outputs(stage).size();
  }
  state_.assign(edges * schedule.microbatches * 2, State::Absent);
}

void Buffers::send(const Message& message) {
  State& state = state_[number(message)];
  Channel& channel = this->channel(message);
  if (channel.held < per_channel_) {
    ++channel.held;
    state = State::Held;
  } else {
    channel.waiting.push_back(message);
    state = State::Waiting;
  }
}

void Buffers::post(const Message& message) {
  State& state = state_[number(message)];
  const bool was_held = state == State::Held;
  state = State::Posted;
  if (!was_held) return;
  Channel& channel = this->channel(message);
  while (!channel.waiting.empty()) {
    State& next = state_[number(channel.waiting.front())];
    channel.waiting.pop_front();
    if (next != State::Waiting) continue;
    next = State::Held;
    return;
  }
  --channel.held;
}

std::size_t Buffers::number(const Message& message) const {
  const std::vector<int>& outputs = graph_.outputs(message.edge.from);
  const auto place = std::lower_bound(outputs.begin(), outputs.end(), message.edge.to) - outputs.begin();
  const std::size_t edge = first_edge_[message.edge.from] + static_cast<std::size_t>(place);
  return (edge * schedule_.microbatches + message.microbatch) * 2 + (message.gradient ? 1 : 0);
}

Buffers::Channel& Buffers::channel(const Message& message) {
  std::uint64_t sender = schedule_.rank_of(message.edge.from, message.microbatch);
  std::uint64_t receiver = schedule_.rank_of(message.edge.to, message.microbatch);
  if (message.gradient) std::swap(sender, receiver);
  return channels_[sender << 32 | receiver];
}

}  // namespace plumbline::schedule
