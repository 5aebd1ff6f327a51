// Fills in a form, such as a page: text with places in double braces.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace plumbline {

/// Returns `form` with each {{place}} replaced by its text. Throws std::out_of_range for a place without a text.
inline std::string filled(std::string_view form, const std::map<std::string, std::string>& texts) {
  std::string whole;
  for (size_t open; (open = form.find("{{")) != form.npos;) {
    const size_t close = form.find("}}", open);
    whole.append(form.substr(0, open)).append(texts.at(std::string(form.substr(open + 2, close - open - 2))));
    form.remove_prefix(close + 2);
  }
  return whole.append(form);
}

}  // namespace plumbline
