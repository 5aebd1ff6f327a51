#include "conformance/cli/options/skip_option.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "runtime/error.h"
#include "runtime/text/number.h"

namespace plumbline::cli {
namespace {

/// Takes a number without a sign from the front of `text`; nullopt if there is none or it overflows.
template <class Number>
std::optional<Number> take_unsigned(std::string_view& text) {
  return text.find_first_of("0123456789.") == 0 ? take_number<Number>(text) : std::nullopt;
}

bool take(std::string_view& text, char sign) {
  if (text.empty() || text.front() != sign) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<SkipOption> parse(const std::string& text) {
  std::string_view rest = text;
  const auto from = take_unsigned<int>(rest);
  const auto to = from && take(rest, '-') ? take_unsigned<int>(rest) : std::nullopt;
  if (!to) return std::nullopt;
  SkipOption skip{.text = text, .edge = {*from, *to}};
  if (rest.empty()) return skip;
  if (take(rest, '=')) skip.bytes = take_unsigned<double>(rest);
  if (!skip.bytes || !rest.empty()) return std::nullopt;
  return skip;
}

}  // namespace

void add_skip_option(CLI::App& command, std::vector<std::string>& texts, const std::string& form,
                     const std::string& help) {
  command.add_option("--skip", texts, help)->delimiter(',')->allow_extra_args(false)->type_name(form);
}

std::vector<SkipOption> parse_skips(const std::string& command, const std::vector<std::string>& texts, int count,
                                    const std::string& counted) {
  std::vector<SkipOption> skips;
  for (const std::string& text : texts) {
    const auto refuse = [&](const std::string& reason) {
      throw InputError(command + ": --skip " + text + ": " + reason);
    };
    const std::optional<SkipOption> skip = parse(text);
    if (!skip) refuse("give FROM-TO or FROM-TO=BYTES, as in 0-3 or 0-3=2.5; several with commas between them");
    const auto [from, to] = skip->edge;
    if (to <= from) refuse("a skip goes from a stage to a later one: TO must be above FROM");
    if (to >= count) refuse("expected " + counted + " 0 to " + std::to_string(count - 1));
    const auto same = [&](const SkipOption& other) { return other.edge == skip->edge; };
    if (std::any_of(skips.begin(), skips.end(), same)) {
      refuse("from " + std::to_string(from) + " to " + std::to_string(to) +
             " is given twice; give it once, with the bytes of both");
    }
    skips.push_back(*skip);
  }
  return skips;
}

}  // namespace plumbline::cli
