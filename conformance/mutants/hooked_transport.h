// A transport decorated with hooks that change, drop, duplicate or misdirect messages.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "conformance/backend/fault.h"

namespace plumbline::conformance {

/// The kind of a message, read from its tag. runtime/engine/plan/plan.h defines the tags of values and gradients,
/// runtime/engine/replicas/parameter_copies.h those for copies of parameters.
enum class Load {
  Value,     ///< a boundary value, sent in the forward
  Gradient,  ///< the gradient of a boundary value, sent in the backward
  CopyFlag,  ///< whether a copy of a parameter has a gradient
  Copy,      ///< the gradient of a copy, sent to the other copies
  Shard,     ///< a rank's part of a parameter, sent to the other ranks that hold the stage
  Other,     ///< any other message, such as those that ranks exchange before a step
};

struct Message {
  Load load = Load::Other;
  int channel = 0, microbatch = 0;  ///< for Value and Gradient; otherwise 0
  int peer = 0;                     ///< the destination rank of a sent message, the source rank of an arrived message
  int64_t tag = 0;
  int64_t number = 0;  ///< counts the sends to `peer`, or the receives from it, with this tag
  std::vector<std::byte> body;
  int times = 1;  ///< number of times that the message is sent; 0: it is lost

  /// For Value and Gradient: changes the tag, channel and micro-batch. `microbatches` is the number of micro-batches in
  /// a step.
  void move_to(int new_channel, int new_microbatch, int microbatches);
};

/// Hooks for messages of every kind except Load::Other.
struct TransportHooks {
  /// Called before a message is sent. Changes of `peer`, `tag`, `body` and `times` take effect.
  std::function<void(Message& message)> send = {};
  /// Called after a message arrived. The rank continues with `body`, which aliases its receive buffer.
  std::function<void(const Message& message, std::span<std::byte> body)> arrived = {};
};

/// Decorates `inner`, which must outlive the decorator, as must the case, schedule and counter of `site`. The decorator
/// calls site.happens() whenever a hook changed a message.
std::unique_ptr<transport::Transport> with_hooks(transport::Transport& inner, const FaultSite& site,
                                                 TransportHooks hooks);

/// Returns a flat tensor of the case's dtype that aliases `bytes`. Undefined if there are no bytes, if their number is
/// not a multiple of the element size, or if a value is too small to be a number of a run (integers read as floating
/// point).
at::Tensor as_numbers(std::span<std::byte> bytes, const FaultSite& site);

}  // namespace plumbline::conformance
