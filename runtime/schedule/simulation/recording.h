// The recorded causes of the times of actions and messages, from which critical_path.h derives its chain.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/simulation/simulation.h"

namespace plumbline::schedule {

/// The causes of the times at which a message was sent and began to travel.
struct MessageCauses {
  Place producer;
  std::int32_t queued_after = -1;  ///< the message that occupied the link when this one was sent; -1: none
  /// The last message of the same unit (group or single action), up to this one, that waited for a buffer; -1: none.
  std::int32_t stalled = -1;
  /// The action whose beginning freed the buffer for which this message waited; none if it did not wait.
  Place freed_by;
};

/// The causes of the times at which an action begins and its rank continues after it. Messages are indices into
/// Recording::transfers. `stalled` is recorded for the last action of a unit, the others for the first.
struct ActionCauses {
  std::int32_t operation = -1;  ///< the operation, or reload, that delayed the action; -1: none
  std::int32_t message = -1;    ///< the last message to arrive; -1: no message delayed the action
  std::int32_t stalled = -1;    ///< the last message of the unit that waited for a buffer; -1: none
};

/// An operation of whole stages (collectives.h), or a transfer of activations between a rank and its host.
struct OperationTimes {
  Place last_begun;  ///< the action that began it last
  /// When that action was executed (of a transfer: when its turn came), and when the operation or transfer ended.
  double begin = 0, end = 0;
  std::int32_t queued_after = -1;  ///< of a transfer: the one for whose end it waited; -1: none
};

struct Recording {
  std::vector<std::vector<TimedAction>> times;     // indexed by rank and position
  std::vector<std::vector<ActionCauses>> actions;  // indexed as times
  std::vector<Transfer> transfers;
  std::vector<MessageCauses> messages;     // indexed as transfers
  std::vector<OperationTimes> operations;  // indexed as Collectives::operations(); then the transfers to and from hosts
};

}  // namespace plumbline::schedule
