// A transport whose messages can be changed, lost, doubled or misdirected on their way.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "conformance/backend/fault.h"

namespace plumbline::conformance {

/// What a tag stands for: runtime/engine/plan/plan.h lays out those of values, gradients.h those of copies.
enum class Load {
  Value,     ///< forwards
  Gradient,  ///< backwards
  CopyFlag,  ///< whether a copy of a shared parameter has a gradient
  Copy,      ///< that gradient, on its way to the first copy
  SumFlag,
  Sum,    ///< the sum of all copies, on its way back
  Other,  ///< what ranks tell each other before a step
};

struct Message {
  Load load = Load::Other;
  int channel = 0, microbatch = 0;  ///< of Value and Gradient
  int peer = 0;
  int64_t tag = 0;
  std::vector<std::byte> body;
  int times = 1;  ///< how often it is sent

  /// Makes it a message of another channel or micro-batch, of so many.
  void move_to(int new_channel, int new_microbatch, int microbatches);
};

struct TransportHooks {
  /// Before it is sent; may change all of it.
  std::function<void(Message& message)> send = {};
  /// After it arrived: its body is what the rank goes on with.
  std::function<void(const Message& message, std::span<std::byte> body)> arrived = {};
};

/// Says that the fault happened wherever a hook changed anything.
std::unique_ptr<transport::Transport> with_hooks(transport::Transport& inner, const FaultSite& site,
                                                 TransportHooks hooks);

/// The bytes as a flat tensor of the case's dtype, in place; undefined where they cannot be that: another number of
/// bytes, or numbers that no run makes (whole numbers read as floating point).
at::Tensor as_numbers(std::span<std::byte> bytes, const FaultSite& site);

}  // namespace plumbline::conformance
