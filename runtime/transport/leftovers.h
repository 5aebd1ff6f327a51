// Finds messages that are left when everything has been received: one that came twice would be taken for a message of
// the next case, which would then be blamed.
#pragma once

#include <map>
#include <utility>

#include "runtime/transport/forwarding_transport.h"

namespace plumbline::transport {

/// Forwards every call, and notes from where and under which tags this rank receives. Messages of an announced traffic
/// (NCCL's) are not looked for: there, a message without a receive is never sent.
class Leftovers : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;

  std::unique_ptr<AgreedTraffic> agree_on_traffic(const Traffic& traffic, const Deadline& deadline) override;
  Request irecv(void* data, size_t bytes, int peer, int64_t tag) override;

  /// Throws Error, which names the sender and the tag, if a message has arrived under one of the noted tags that no
  /// receive took. Nothing may be outstanding. What was noted is forgotten. A message that is still on its way is not
  /// seen: after a barrier of all ranks there is none in practice, though MPI does not promise it.
  void expect_none();

 private:
  std::map<std::pair<int, int64_t>, size_t> received_;  ///< bytes of the last message, by source and tag
  bool announced_ = false;
};

}  // namespace plumbline::transport
