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

  /// nullopt: bytes that are no value.
  void post_send(const Channel& channel, std::optional<Value> value);
  /// The number of the channel's next receive.
  size_t post_receive(const Channel& channel);
  /// The value of message `number`, which has arrived.
  std::optional<Value> take(const Channel& channel, size_t number);

 private:
  struct Messages {
    std::map<size_t, std::optional<Value>> under_way;
    size_t sent = 0, awaited = 0;
  };
  std::mutex mutex_;
  std::map<Channel, Messages> channels_;
};

/// Decorates `inner`: values of `memory` are sent, and what arrives gets the value that was sent. All three must
/// outlive the decorator.
std::unique_ptr<transport::Transport> recording_transport(transport::Transport& inner, Memory& memory, Wire& wire);

}  // namespace plumbline::proof
