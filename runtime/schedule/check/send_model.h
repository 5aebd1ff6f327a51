// The conditions under which a transport completes sends, and so when a schedule may stall.
#pragma once

#include <limits>

namespace plumbline::schedule {

/// Messages use channels, one for each ordered pair of ranks. A channel carries one message for every edge between a
/// sending and a receiving stage, micro-batch and direction, in the order of the SENDs (within a SEND, of the receiving
/// stages). Tags distinguish messages: the order in which receives are posted does not matter. A message is *complete*,
/// so that its sender may reuse the memory, once its receive is posted or a buffer of its channel holds it. A message
/// without a posted receive takes a free buffer, in the order of sending, and keeps it until the receive is posted.
///
/// The default is a rendezvous of asynchronous sends, as in our engine and in PyTorch.
struct SendModel {
  static constexpr int kUnlimited = std::numeric_limits<int>::max();

  int buffers = 0;  ///< for each channel; 0: rendezvous; kUnlimited: a send never waits for its receive
  /// Where a rank waits until all messages of a SEND, which start together, are complete. True: at the SEND itself.
  /// False: at its WAIT_SEND, or, without a WAIT_SEND, at the end of the step.
  bool blocking = false;
};

}  // namespace plumbline::schedule
