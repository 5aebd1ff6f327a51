// How a transport completes what a rank sends: the ways in which a schedule may come to a stop.
#pragma once

#include <limits>

namespace plumbline::schedule {

/// Messages go over channels, one for each ordered pair of ranks; on it there is one message for every edge between a
/// sending and a receiving stage, micro-batch and direction, and its order is that of the SENDs (within a SEND that of
/// the receiving stages). Messages are told apart by tags: the order in which receives are posted does not matter.
/// A message is *complete*, so that its sender may use the memory again, once its receive is posted or while fewer than
/// `buffers` earlier messages of its channel are without one.
///
/// By default a rendezvous of asynchronous sends, as in our engine and in PyTorch.
struct SendModel {
  static constexpr int kUnlimited = std::numeric_limits<int>::max();

  int buffers = 0;  ///< for each channel; 0: rendezvous; kUnlimited: a send never waits for its receive
  /// Where a rank waits until all messages of a SEND are complete (it starts all of them together): at the SEND itself,
  /// or, when false, at its WAIT_SEND, or without one at the end of the step.
  bool blocking = false;
};

}  // namespace plumbline::schedule
