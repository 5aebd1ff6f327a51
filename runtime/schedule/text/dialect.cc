#include "runtime/schedule/text/dialect.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "runtime/error.h"

namespace plumbline::schedule {
namespace {

using enum ActionType;

constexpr std::array<std::string_view, 3> kDialectNames = {"2024", "2.11", "2.15"};

}  // namespace

std::string_view to_string(Dialect dialect) { return kDialectNames.at(static_cast<std::size_t>(dialect)); }

Dialect parse_dialect(std::string_view text) {
  const auto found = std::find(kDialectNames.begin(), kDialectNames.end(), text);
  if (found == kDialectNames.end()) {
    throw InputError("there is no dialect " + quoted_text(text) +
                     "; expected 2024, 2.11 or 2.15, the versions of PyTorch's text form");
  }
  return static_cast<Dialect>(found - kDialectNames.begin());
}

Dialect needed_dialect(ActionType type) {
  return is_wait_send(type) || type == WAIT_REDUCE_GRAD ? Dialect::Torch215 : Dialect::Torch211;
}

Action parse_action_of_2024(std::string_view text) {
  const auto refuse = [&](const std::string& what) {
    throw InputError("action " + quoted_text(text) + ": the dialect of 2024 has no " + what +
                     "; expected F, B (input half), W, BW (whole backward), a transfer, UNSHARD or RESHARD");
  };
  if (text.starts_with('(')) refuse("groups");
  std::string today(text);
  const std::size_t kind = text.find_first_not_of("0123456789");
  const std::size_t end = text.find_last_not_of("0123456789");
  const std::string_view name = kind == text.npos ? "" : text.substr(kind, end - kind + 1);
  if (name == "I") refuse("I");
  if (name == "B") today[kind] = 'I';
  if (name == "BW") today.erase(kind + 1, 1);
  const Action action = parse_action(today);
  if (action.type == REDUCE_GRAD || needed_dialect(action.type) == Dialect::Torch215)
    refuse(std::string(to_string(action.type)));
  return action;
}

std::optional<Action> trace_of_2024(const Schedule& schedule) {
  std::vector<std::pair<int, int>> backwards, weights;
  std::optional<Action> first;
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) {
      if (action.type == I) return std::nullopt;
      if (action.type == W) weights.emplace_back(action.stage, action.microbatch);
      if (action.type != B) continue;
      backwards.emplace_back(action.stage, action.microbatch);
      if (!first) first = action;
    }
  }
  std::sort(backwards.begin(), backwards.end());
  std::sort(weights.begin(), weights.end());
  return backwards == weights ? first : std::nullopt;
}

}  // namespace plumbline::schedule
