// Wire: terms travel beside the messages. Each rank's transport is decorated (recording_transport()); the decorators of
// a run share a Wire, in which message number n from one rank to another under one tag finds its value, as a transport
// matches messages in the order in which they were posted.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>

#include "conformance/proof/terms/memory.h"
#include "runtime/transport/transport.h"

namespace plumbline::proof {

/// Thread-safe.
class Wire {
 public:
  /// From rank, to rank, tag.
  using Channel = std::tuple<int, int, int64_t>;

  /// Stores the value of the channel's next message; nullopt: its bytes have no known value.
  void post_send(const Channel& channel, std::optional<Value> value);
  /// Returns the number of the channel's next message to receive.
  size_t post_receive(const Channel& channel);
  /// Removes and returns the value of message `number`, which has arrived.
  std::optional<Value> take(const Channel& channel, size_t number);

 private:
  struct Messages {
    std::map<size_t, std::optional<Value>> under_way;
    size_t sent = 0, awaited = 0;
  };
  std::mutex mutex_;
  std::map<Channel, Messages> channels_;
};

/// Decorates `inner` of the rank with this memory: the value of the bytes that are sent goes over `wire`, and becomes
/// the value of the bytes that arrive. All three must outlive the decorator.
std::unique_ptr<transport::Transport> recording_transport(transport::Transport& inner, Memory& memory, Wire& wire);

}  // namespace plumbline::proof
