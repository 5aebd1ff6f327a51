// Joins words to one string, as in the "expected one of" lists of error messages: "a, b, c".
#pragma once

#include <string>
#include <string_view>

namespace plumbline {

/// Returns `words` with `separator` between them. `words` is any range of strings, string views or C strings, lazy
/// ranges included; an empty range gives "".
template <class Range>
std::string join(const Range& words, std::string_view separator = ", ") {
  std::string text;
  bool first = true;
  for (const auto& word : words) {
    if (!first) text += separator;
    text += word;
    first = false;
  }
  return text;
}

}  // namespace plumbline
