#include "runtime/schedule/action.h"

#include <array>
#include <optional>

#include "runtime/error.h"
#include "runtime/text/number.h"

namespace plumbline::schedule {
namespace {

using enum ActionType;

constexpr std::array<ActionType, kActionTypeCount> kTypes = {
    F,           B,           I,       W,      SEND_F,  RECV_F,  SEND_B,      RECV_B,
    WAIT_SEND_F, WAIT_SEND_B, OFFLOAD, RELOAD, UNSHARD, RESHARD, REDUCE_GRAD, WAIT_REDUCE_GRAD};
constexpr std::array<std::string_view, kTypes.size()> kActionNames = {
    "F",           "B",           "I",       "W",      "SEND_F",  "RECV_F",  "SEND_B",      "RECV_B",
    "WAIT_SEND_F", "WAIT_SEND_B", "OFFLOAD", "RELOAD", "UNSHARD", "RESHARD", "REDUCE_GRAD", "WAIT_REDUCE_GRAD"};
constexpr std::string_view kGroupEnd = ")OVERLAP_F_B";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string names_where(bool with_microbatch) {
  std::string names;
  for (ActionType type : kTypes) {
    if (has_microbatch(type) == with_microbatch) (names += names.empty() ? "" : ", ") += to_string(type);
  }
  return names;
}

[[noreturn]] void refuse(std::string_view text, const std::string& reason) {
  throw InputError("action " + quoted_text(text) + ": " + reason +
                   "; expected <stage><kind><micro-batch>, such as 2F0 or 1SEND_F3, with a kind out of " +
                   names_where(true) + ", or <stage><kind> with one out of " + names_where(false));
}

[[noreturn]] void refuse_group(std::string_view text, const std::string& reason) {
  throw InputError("group " + quoted_text(text) + ": " + reason +
                   "; expected (2F1;3B0)OVERLAP_F_B, without blanks, with two or more of F, B, I, W");
}

int parse_index(std::string_view digits, std::string_view text, const char* what) {
  if (digits.empty()) refuse(text, std::string("the ") + what + " is missing");
  if (digits.size() > 1 && digits.front() == '0') refuse(text, std::string("the ") + what + " has leading zeros");
  const std::optional<int> value = parse_number<int>(digits);
  if (!value) refuse(text, std::string("the ") + what + " is too large");
  return *value;
}

std::optional<ActionType> find_type(std::string_view name) {
  for (std::size_t i = 0; i < kActionNames.size(); ++i) {
    if (kActionNames[i] == name) return kTypes[i];
  }
  return std::nullopt;
}

Action parse_member(std::string_view member, std::string_view group) {
  const Action action = [&] {
    try {
      return parse_action(member);
    } catch (const InputError& error) {
      throw InputError("group " + quoted_text(group) + ": " + error.what());
    }
  }();
  if (!is_compute(action.type)) refuse_group(group, to_string(action) + " is no computation");
  return action;
}

}  // namespace

std::span<const ActionType> action_types() { return kTypes; }

std::string_view to_string(ActionType type) { return kActionNames.at(static_cast<std::size_t>(type)); }

std::string to_string(const Action& action) {
  std::string text = std::to_string(action.stage).append(to_string(action.type));
  return has_microbatch(action.type) ? text.append(std::to_string(action.microbatch)) : text;
}

Action parse_action(std::string_view text) {
  std::size_t kind_begin = 0;
  while (kind_begin < text.size() && is_digit(text[kind_begin])) ++kind_begin;
  std::size_t kind_end = text.size();
  while (kind_end > kind_begin && is_digit(text[kind_end - 1])) --kind_end;

  const std::string_view kind = text.substr(kind_begin, kind_end - kind_begin);
  const std::optional<ActionType> type = find_type(kind);
  if (!type) refuse(text, kind.empty() ? "there is no kind" : "there is no kind " + quoted_text(kind));
  const int stage = parse_index(text.substr(0, kind_begin), text, "stage");
  if (has_microbatch(*type)) return {stage, *type, parse_index(text.substr(kind_end), text, "micro-batch")};
  if (kind_end != text.size()) refuse(text, std::string(kind) + " is for a whole stage and takes no micro-batch");
  return {stage, *type, kNoMicrobatch};
}

std::string entry_text(std::span<const Action> entry) {
  if (entry.size() == 1) return to_string(entry.front());
  std::string text;
  for (const Action& member : entry) (text += text.empty() ? "(" : ";") += to_string(member);
  return text.append(kGroupEnd);
}

void parse_entry(std::string_view text, std::vector<Action>& actions) {
  if (!text.starts_with('(')) {
    actions.push_back(parse_action(text));
    return;
  }
  if (!text.ends_with(kGroupEnd)) refuse_group(text, "it does not end in " + std::string(kGroupEnd));
  std::string_view rest = text.substr(1, text.size() - 1 - kGroupEnd.size());
  if (rest.find_first_of("()") != rest.npos) refuse_group(text, "groups do not nest");
  std::vector<Action> members;
  for (bool more = true; more;) {
    const std::size_t end = rest.find(';');
    members.push_back(parse_member(rest.substr(0, end), text));
    more = end != rest.npos;
    if (more) rest.remove_prefix(end + 1);
  }
  if (members.size() < 2) refuse_group(text, "it has one member");
  for (std::size_t i = 0; i + 1 < members.size(); ++i) members[i].overlaps_next = true;
  actions.insert(actions.end(), members.begin(), members.end());
}

std::string quoted_text(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  constexpr char kHex[] = "0123456789abcdef";
  std::string result = "'";
  for (char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      result += c;
    } else {
      ((result += "\\x") += kHex[byte >> 4]) += kHex[byte & 15];
    }
  }
  return result += text.size() > kLongest ? "...'" : "'";
}

}  // namespace plumbline::schedule
