// Parses numbers in texts, in every locale alike: no blanks, no plus sign in front and no hexadecimal digits.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace plumbline {

/// Removes the longest number from the front of `text` and returns it: decimal digits, after a minus sign if `Number`
/// is signed; a floating-point number may also have a fraction and an exponent, or be an infinity or NaN in any form
/// that std::from_chars() takes. Returns nullopt, and leaves `text` as it is, if it begins with no number or with one
/// out of the range of `Number`.
template <class Number>
std::optional<Number> take_number(std::string_view& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// Returns the number that all of `text` is, in the form that take_number() accepts; nullopt for any other text.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  const std::optional<Number> number = take_number<Number>(text);
  return text.empty() ? number : std::nullopt;
}

}  // namespace plumbline
