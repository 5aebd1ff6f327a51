#include "runtime/text/patterns.h"

#include <fnmatch.h>

#include <algorithm>
#include <sstream>

#include "runtime/error.h"

namespace plumbline {

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

bool matches_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::ranges::any_of(
      patterns, [&](const std::string& pattern) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; });
}

std::vector<std::string> matching(const std::vector<std::string>& names, const std::vector<std::string>& patterns,
                                  const std::function<std::string(const std::string& pattern)>& refusal) {
  for (const std::string& pattern : patterns)
    if (std::ranges::none_of(names, [&](const std::string& name) { return matches_any({pattern}, name); }))
      throw InputError(refusal(pattern));
  std::vector<std::string> matched;
  std::ranges::copy_if(names, std::back_inserter(matched),
                       [&](const std::string& name) { return matches_any(patterns, name); });
  return matched;
}

}  // namespace plumbline
