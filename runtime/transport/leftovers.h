// Finds messages that no receive took. Otherwise a message that was sent twice would match a receive of the next case,
// and that case would be blamed.
#pragma once

#include <map>
#include <utility>

#include "runtime/transport/forwarding_transport.h"

namespace plumbline::transport {

/// Forwards every call to the decorated transport, and records the source, the tag and the size of each receive of this
/// rank whose tag is not negative (negative tags are those of collectives). Not thread-safe, like every transport.
class Leftovers : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;

  /// Once a call has returned traffic that is not null (NCCL's), expect_none() checks nothing any more, not even the
  /// messages over the control transport: over NCCL a message without a receive is never sent.
  std::unique_ptr<AgreedTraffic> agree_on_traffic(const Traffic& traffic, const Deadline& deadline) override;
  Request irecv(void* data, size_t bytes, int peer, int64_t tag) override;

  /// Throws Error, which names the source and the tag, if a message of a recorded source and tag is there for which no
  /// receive was posted: this takes the message, and the remaining tags are not checked. Also throws as has_message(),
  /// irecv() and wait() do, such as Error for a message of another size. Clears the record in every case.
  ///
  /// A message that has not arrived yet is not found. Call this after a barrier of all ranks: then every message has
  /// arrived in practice, though MPI does not guarantee it.
  void expect_none();

 private:
  std::map<std::pair<int, int64_t>, size_t> received_;  ///< bytes of the last receive, by source and tag
  bool announced_ = false;                              ///< agree_on_traffic() has returned traffic
};

}  // namespace plumbline::transport
