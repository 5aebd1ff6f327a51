// The buffers of the channels between ranks while a schedule is replayed: which messages lie in one.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "runtime/schedule/stage_graph.h"

namespace plumbline::schedule {

/// What travels between two ranks for one edge and micro-batch: the value, or its gradient in the other direction.
struct Message {
  StageEdge edge;
  int microbatch = 0;
  bool gradient = false;
};

/// `per_channel` buffers, at least 1, for each ordered pair of ranks (SendModel). A message takes a free one when it is
/// sent, or waits for one in the order of sending; a buffer is free again when the receive of what lies in it is
/// posted. Constant time for each message, but for the search of an edge among those of its stage.
class Buffers {
 public:
  /// Both must outlive it; all edges and micro-batches of messages are those of the schedule and the graph.
  Buffers(const Schedule& schedule, const StageGraph& graph, int per_channel);

  /// The message's receive has not been posted. To be called once for each message.
  void send(const Message& message);

  /// The receive of the message is posted, whether or not that was sent.
  void post(const Message& message);

  /// Whether the message lies in a buffer; false before it is sent.
  bool holds(const Message& message) const { return state_[number(message)] == State::Held; }

 private:
  enum class State : std::uint8_t { Absent, Waiting, Held, Posted };
  struct Channel {
    int held = 0;
    std::deque<Message> waiting;  // in the order of sending; those posted meanwhile are skipped when they come up
  };

  std::size_t number(const Message& message) const;
  Channel& channel(const Message& message);

  const Schedule& schedule_;
  const StageGraph& graph_;
  const int per_channel_;
  std::vector<std::size_t> first_edge_;  // by stage: how many edges leave the stages before it
  std::vector<State> state_;             // by edge, micro-batch and direction
  std::unordered_map<std::uint64_t, Channel> channels_;
};

}  // namespace plumbline::schedule
