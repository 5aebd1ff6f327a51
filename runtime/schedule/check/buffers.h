// The buffers of the channels between ranks during a replay: tracks which messages occupy one.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "runtime/schedule/stage_graph.h"

namespace plumbline::schedule {

/// The message between two ranks for one edge and micro-batch: the value, or its gradient in the other direction.
struct Message {
  StageEdge edge;
  int microbatch = 0;
  bool gradient = false;
};

/// There are `per_channel` buffers, at least 1, for each ordered pair of ranks (SendModel). A message takes a free
/// buffer when it is sent, or queues for one in the order of sending; a buffer becomes free when the receive of its
/// message is posted. Constant time for each message, except for the search of an edge among those of its stage.
class Buffers {
 public:
  /// `schedule` and `graph` must outlive this object. All edges and micro-batches of messages must exist in them.
  Buffers(const Schedule& schedule, const StageGraph& graph, int per_channel);

  /// Sends a message whose receive is not yet posted; at most once for each message.
  void send(const Message& message);

  /// Posts the receive of the message, whether or not the message was sent.
  void post(const Message& message);

  /// Whether the message occupies a buffer; false before it is sent.
  bool holds(const Message& message) const { return state_[number(message)] == State::Held; }

 private:
  enum class State : std::uint8_t { Absent, Waiting, Held, Posted };
  struct Channel {
    int held = 0;
    std::deque<Message> waiting;  // in the order of sending; skips those posted meanwhile
  };

  std::size_t number(const Message& message) const;
  Channel& channel(const Message& message);

  const Schedule& schedule_;
  const StageGraph& graph_;
  const int per_channel_;
  std::vector<std::size_t> first_edge_;  // by stage: the number of edges that leave earlier stages
  std::vector<State> state_;             // by edge, micro-batch and direction
  std::unordered_map<std::uint64_t, Channel> channels_;
};

}  // namespace plumbline::schedule
