// Courier: moves tensors between this rank and others during one step.
#pragma once

#include <vector>

#include "runtime/engine/context.h"
#include "runtime/engine/step/step_buffers.h"

namespace plumbline::engine {

class Courier {
 public:
  /// The strides of a tensor are sent under the tensor's tag plus `tag_count`. `sends` must be empty. Both references
  /// must outlive the courier.
  Courier(const EngineContext& context, int64_t tag_count, std::vector<PendingSend>& sends)
      : context_(context), tag_count_(tag_count), sends_(sends) {}

  /// Posts the receive of a boundary value or its gradient from rank `peer`.
  PendingReceive post_receive(const split::Boundary& boundary, int peer, int64_t tag);

  /// Waits for a receive and returns the tensor. Throws as Transport::wait() does; the text of a TimeoutError or Error
  /// contains `what`, which names the awaited value.
  at::Tensor receive(PendingReceive& pending, const transport::WaitContext& what);

  /// Starts the sends of a tensor; `by` is the action to which they belong. Keeps the memory until the sends are
  /// complete.
  void send(const schedule::Action& by, const OutgoingTensor& tensor, int rank, int64_t tag);

  /// Frees the memory of completed sends, up to the oldest send that is not complete. Never blocks.
  void release_completed_sends();

  /// For a WAIT_SEND: waits until the sends of its stage and micro-batch are complete; returns at once if none is
  /// pending.
  void wait_send(const schedule::Action& wait);

  /// Waits until all sends are complete.
  void finish_sends();

  /// Seconds spent in waits so far, for receives and sends.
  double waiting() const { return waiting_; }
  /// The time (clock_seconds()) when the last receive() ended; 0 without EngineOptions::trace.
  double last_arrival() const { return last_arrival_; }

 private:
  void wait(transport::Request& request, const transport::WaitContext& what);

  const EngineContext& context_;
  const int64_t tag_count_;
  std::vector<PendingSend>& sends_;
  size_t first_send_ = 0;  // index in sends_; all earlier sends are complete
  double waiting_ = 0, last_arrival_ = 0;
};

}  // namespace plumbline::engine
