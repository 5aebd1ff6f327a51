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

/// The kind of message that a tag stands for. runtime/engine/plan/plan.h defines the tags of values and their
/// gradients, runtime/engine/gradients.h those of copies of a shared parameter.
enum class Load {
  Value,     ///< a boundary value, sent in the forward
  Gradient,  ///< its gradient, sent in the backward
  CopyFlag,  ///< whether a copy of a shared parameter has a gradient
  Copy,      ///< the gradient of a copy, sent to the first copy
  SumFlag,
  Sum,    ///< the sum over all copies, sent back to each
  Other,  ///< a message that ranks exchange before a step
};

struct Message {
  Load load = Load::Other;
  int channel = 0, microbatch = 0;  ///< of Value and Gradient
  int peer = 0;
  int64_t tag = 0;
  std::vector<std::byte> body;
  int times = 1;  ///< how often it is sent

  /// Changes the tag to that of another channel and micro-batch. `microbatches` is the number of them in a step.
  void move_to(int new_channel, int new_microbatch, int microbatches);
};

struct TransportHooks {
  /// Called before a message is sent; may change every field.
  std::function<void(Message& message)> send = {};
  /// Called after a message arrived; the rank continues with `body`, which the hook may change.
  std::function<void(const Message& message, std::span<std::byte> body)> arrived = {};
};

/// Calls site.happens() whenever a hook changed a message.
std::unique_ptr<transport::Transport> with_hooks(transport::Transport& inner, const FaultSite& site,
                                                 TransportHooks hooks);

/// A flat tensor of the case's dtype that aliases `bytes`. Undefined if their number is not a multiple of the element
/// size, or if the values occur in no run (integers read as floating point).
at::Tensor as_numbers(std::span<std::byte> bytes, const FaultSite& site);

}  // namespace plumbline::conformance
