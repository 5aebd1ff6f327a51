// Routes: what all ranks agreed that a step sends over each edge, and how far the step has come.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/transport/transport.h"

namespace plumbline::transport::nccl {

/// The messages from one rank to another in one step, in the order of sending.
class Route {
 public:
  Route() = default;
  /// `messages` are the sends to this peer, or the sends of this peer to this rank.
  explicit Route(std::vector<Parcel> messages);

  const Parcel& message(size_t index) const { return messages_[index]; }
  size_t size() const { return messages_.size(); }
  /// The index of the message with this tag; nullopt if there is none.
  std::optional<size_t> find(int64_t tag) const;

  size_t issued = 0;  ///< the number of messages of the current step that were passed to NCCL

 private:
  std::vector<Parcel> messages_;
  std::vector<std::pair<int64_t, size_t>> by_tag_;
};

/// The traffic of every rank, indexed by rank. All ranks call it.
std::vector<Traffic> gather_traffic(Transport& control, const Traffic& mine, const Deadline& deadline);

/// The first message that has no counterpart of the same size, in one line; empty if each has.
std::string contradiction(std::span<const Traffic> of_rank);

}  // namespace plumbline::transport::nccl
