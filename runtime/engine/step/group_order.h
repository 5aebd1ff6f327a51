// The order in which a rank executes a group of overlapping actions and the sends that stand after it.
#pragma once

#include <span>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline::engine {

/// Calls `execute` with the position of each action of the group [begin, end) and of each send that stands directly
/// after it. A send follows its member at once, so that it travels while the other members compute; the rest come last.
/// `executed` is memory that is reused. Returns the position after the last send.
template <typename Execute>
size_t for_each_of_group(std::span<const schedule::Action> actions, size_t begin, size_t end,
                         std::vector<char>& executed, const Execute& execute) {
  const auto sends_result_of = [](const schedule::Action& send, const schedule::Action& member) {
    const bool forward = member.type == schedule::ActionType::F;
    return send.stage == member.stage && send.microbatch == member.microbatch &&
           member.type != schedule::ActionType::W &&
           send.type == (forward ? schedule::ActionType::SEND_F : schedule::ActionType::SEND_B);
  };
  size_t sends_end = end;
  while (sends_end < actions.size() && schedule::is_send(actions[sends_end].type)) ++sends_end;
  executed.assign(sends_end - end, false);
  for (size_t member = begin; member < end; ++member) {
    execute(member);
    for (size_t send = end; send < sends_end; ++send) {
      if (executed[send - end] || !sends_result_of(actions[send], actions[member])) continue;
      execute(send);
      executed[send - end] = true;
    }
  }
  for (size_t send = end; send < sends_end; ++send)
    if (!executed[send - end]) execute(send);
  return sends_end;
}

}  // namespace plumbline::engine
