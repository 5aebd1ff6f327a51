// What a simulation writes down for whoever asks why: causes of begins and of late messages (critical_path.h).
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
  std::int32_t queued_after = -1;  ///< the message whose carrying kept it from beginning as it was sent
  /// The message, of the same unit and not after this one, that waited last for a buffer; and, of that one, the action
  /// whose begin freed it.
  std::int32_t stalled = -1;
  Place freed_by;
};

/// Why an action begins when it does, and when its rank went on.
struct ActionCauses {
  std::int32_t message = -1;  ///< that came last; -1: the rank was busy until then, or it is the first
  std::int32_t stalled = -1;  ///< the message of its unit that waited last for a buffer; -1: none
};

struct Recording {
  std::vector<std::vector<TimedAction>> times;     // per rank and position
  std::vector<std::vector<ActionCauses>> actions;  // the same
  std::vector<Transfer> transfers;
  std::vector<MessageCauses> messages;  // the same numbers as transfers
};

}  // namespace plumbline::schedule
