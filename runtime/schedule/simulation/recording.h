// The recorded causes of beginnings and of late messages, from which critical_path.h derives its chain.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/simulation/simulation.h"

namespace plumbline::schedule {

struct Place {
  std::int32_t rank = -1, position = -1;
};

/// Why a message was sent and began when it did.
struct MessageCauses {
  Place producer;
  std::int32_t queued_after = -1;  ///< the message that occupied the link when it was sent
  /// The last message of the same unit, up to this one, that waited for a buffer; and the action whose beginning freed
  /// that buffer.
  std::int32_t stalled = -1;
  Place freed_by;
};

/// Why an action begins when it does, and when its rank continued.
struct ActionCauses {
  std::int32_t message = -1;  ///< the last to arrive; -1: the rank was busy until then, or this is its first action
  std::int32_t stalled = -1;  ///< the message of its unit that waited last for a buffer; -1: none
};

struct Recording {
  std::vector<std::vector<TimedAction>> times;     // per rank and position
  std::vector<std::vector<ActionCauses>> actions;  // the same
  std::vector<Transfer> transfers;
  std::vector<MessageCauses> messages;  // the same numbers as transfers
};

}  // namespace plumbline::schedule
