// One entry of a schedule: what one rank does for one stage and one micro-batch, and its text form.
//
// The text is PyTorch's (torch.distributed.pipelining.schedules._Action): stage, kind, micro-batch without blanks,
// as in 2F0, 0I3, 1SEND_F3. Its parser matches a prefix ("2F0rubbish" is 2F0); ours takes the whole text or refuses.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace plumbline {

/// F forward; B full backward; I input backward; W weight backward (B = I then W).
/// SEND_F sends the outputs of a stage's forward to every stage on another rank that uses one of them; RECV_F *posts*
/// the receives of all inputs that come from other ranks, and the F waits for them. SEND_B and RECV_B mirror that for
/// the gradients: 1SEND_B0 goes to the stages whose outputs stage 1 uses.
enum class ActionType : std::uint8_t { F, B, I, W, SEND_F, RECV_F, SEND_B, RECV_B };

struct Action {
  int stage = 0;
  ActionType type = ActionType::F;
  int microbatch = 0;
  bool operator==(const Action&) const = default;
};

/// All kinds, in the order of the enumeration.
std::span<const ActionType> action_types();

std::string_view to_string(ActionType type);
std::string to_string(const Action& action);

/// F, B, I, W: what takes time on the rank; the others only start a transfer.
constexpr bool is_compute(ActionType type) { return type <= ActionType::W; }

/// The inverse of to_string(action): numbers are plain decimals without sign or leading zeros, at most 2147483647.
/// Throws InputError that quotes the text and says what is accepted.
Action parse_action(std::string_view text);

/// `text` in single quotes for an error line: unprintable bytes escaped, long text cut.
std::string quoted(std::string_view text);

}  // namespace plumbline
