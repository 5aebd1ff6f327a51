// Courier: moves tensors between this rank and others during one step.
#pragma once

#include <vector>

#include "runtime/engine/context.h"
#include "runtime/engine/step/step_buffers.h"

namespace plumbline::engine {

class Courier {
 public:
  /// `tag_count`: the strides of a tensor travel under its tag plus this. `sends` is empty and must outlive the
  /// courier.
  Courier(const EngineContext& context, int64_t tag_count, std::vector<PendingSend>& sends)
      : context_(context), tag_count_(tag_count), sends_(sends) {}

  /// Posts the receive of a boundary value or its gradient.
  PendingReceive post_receive(const split::Boundary& boundary, int peer, int64_t tag);

  /// Waits for a receive. Errors begin with the context, which names the awaited value.
  at::Tensor receive(PendingReceive& pending, const transport::WaitContext& what);

  /// Starts a send; `by` is the action that it belongs to.
  void send(const schedule::Action& by, const OutgoingTensor& tensor, int rank, int64_t tag);

  /// Frees the memory of received messages; messages are received in roughly the order of sending.
  void release_completed_sends();

  /// For WAIT_SEND: waits until the messages of that action's send are received.
  void wait_send(const schedule::Action& wait);

  /// Waits until all messages are received.
  void finish_sends();

  /// Seconds spent waiting so far.
  double waiting() const { return waiting_; }
  /// The arrival time of the last tensor, in seconds as now() counts.
  double last_arrival() const { return last_arrival_; }

 private:
  void wait(transport::Request& request, const transport::WaitContext& what);

  const EngineContext& context_;
  const int64_t tag_count_;
  std::vector<PendingSend>& sends_;
  size_t first_send_ = 0;  // all before it are complete
  double waiting_ = 0, last_arrival_ = 0;
};

}  // namespace plumbline::engine
