// One entry of a schedule: an action of one rank for one stage and one micro-batch, and its text form.
//
// The text form is PyTorch's (torch.distributed.pipelining.schedules._Action): stage, kind and micro-batch without
// blanks, as in 2F0, 0I3, 1SEND_F3, 1UNSHARD; a group is (2F1;3B0)OVERLAP_F_B. PyTorch's parser matches a prefix
// ("2F0rubbish" is 2F0, "1UNSHARD7" is accepted); ours matches the whole text or refuses it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::schedule {

/// F forward; B full backward; I input backward; W weight backward (B = I then W). SEND_F sends the outputs of a
/// stage's forward to every stage on another rank that uses one of them. RECV_F *posts* the receives of all inputs that
/// come from other ranks, and the F waits for their data. SEND_B and RECV_B do the same with gradients, in the other
/// direction: 1SEND_B0 goes to the stages whose outputs stage 1 uses.
///
/// OFFLOAD begins to move the activations of its stage and micro-batch out of the rank's memory: all that the rest of
/// the backward (the B, the I and W, or the W alone) will read. RELOAD begins to bring them back, and the next B, I or
/// W of that stage and micro-batch waits for them. Both run beside the computations, one after another on each rank.
/// They are actions of the order as in PipeOffload (Wan et al., arXiv 2503.01328) and OptPipe (arXiv 2510.05186).
/// PipeOffload's runtime has five events: OFFLOAD is its OFFLOAD_SEND_START, and the memory is free from
/// OFFLOAD_SEND_END on; RELOAD is its OFFLOAD_RECV_PREP and OFFLOAD_RECV_START, and the backward waits for its
/// OFFLOAD_RECV_END.
///
/// WAIT_SEND_F and WAIT_SEND_B wait until the SEND_F or SEND_B of their stage and micro-batch is complete (PyTorch 2.15
/// and later). A send without such an action is awaited at the end of the step.
///
/// The other kinds act on a whole stage and have no micro-batch: UNSHARD gathers its parameters, sharded over a
/// data-parallel group; RESHARD frees the gathered copy; REDUCE_GRAD starts the sum of its gradients over that group
/// and WAIT_REDUCE_GRAD waits for that sum.
enum class ActionType : std::uint8_t {
  F,
  B,
  I,
  W,
  SEND_F,
  RECV_F,
  SEND_B,
  RECV_B,
  WAIT_SEND_F,
  WAIT_SEND_B,
  OFFLOAD,
  RELOAD,
  UNSHARD,
  RESHARD,
  REDUCE_GRAD,
  WAIT_REDUCE_GRAD,
};

inline constexpr int kActionTypeCount = 16;

/// The micro-batch of an action that belongs to a whole stage.
inline constexpr int kNoMicrobatch = -1;

struct Action {
  int stage = 0;
  ActionType type = ActionType::F;
  int microbatch = 0;  ///< kNoMicrobatch for UNSHARD, RESHARD, REDUCE_GRAD and WAIT_REDUCE_GRAD
  /// This action and the next of its rank's list belong to one group, (2F1;3B0)OVERLAP_F_B: the group begins when all
  /// external inputs of its members are available, and their results become available when all members have ended.
  /// Members are computations.
  bool overlaps_next = false;
  bool operator==(const Action&) const = default;
};

/// All kinds, in the order of the enumeration. Valid for the whole program.
std::span<const ActionType> action_types();

/// "F", "SEND_F", ...: the kind as in an action's text.
std::string_view to_string(ActionType type);

/// The text of a single action. Ignores the group: 2F1 for either value of overlaps_next.
std::string to_string(const Action& action);

/// F, B, I, W: the kinds that take time on the rank.
constexpr bool is_compute(ActionType type) { return type <= ActionType::W; }
constexpr bool is_send(ActionType type) { return type == ActionType::SEND_F || type == ActionType::SEND_B; }
constexpr bool is_receive(ActionType type) { return type == ActionType::RECV_F || type == ActionType::RECV_B; }
constexpr bool is_wait_send(ActionType type) {
  return type == ActionType::WAIT_SEND_F || type == ActionType::WAIT_SEND_B;
}
/// Moves activations between a rank and its host, not between ranks.
constexpr bool is_offload(ActionType type) { return type == ActionType::OFFLOAD || type == ActionType::RELOAD; }
/// False for the kinds that act once on a whole stage.
constexpr bool has_microbatch(ActionType type) { return type <= ActionType::RELOAD; }

/// The inverse of to_string(action). Numbers are plain decimals without sign or leading zeros, at most 2147483647.
/// Throws InputError that quotes the text and says what is expected.
Action parse_action(std::string_view text);

/// One entry of a list in text form: 2F1 for a single action, (2F1;3B0)OVERLAP_F_B for all members of a group. `entry`
/// is not empty.
std::string entry_text(std::span<const Action> entry);

/// The inverse of entry_text: appends the action, or all members of the group, to `actions`. A group has at least two
/// members, all of them computations; groups do not nest. Throws InputError as parse_action does, and then leaves
/// `actions` unchanged.
void parse_entry(std::string_view text, std::vector<Action>& actions);

/// `text` in single quotes for an error line: bytes other than printable ASCII as \x.., text beyond 60 bytes cut.
std::string quoted_text(std::string_view text);

}  // namespace plumbline::schedule
