// Shell patterns, separated by commas, that choose among names.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace plumbline {

std::vector<std::string> split_at_commas(const std::string& text);

/// Whether any of the patterns matches the name (fnmatch).
bool matches_any(const std::vector<std::string>& patterns, const std::string& name);

/// The names that any of the patterns matches, in their order. Throws InputError with the text refusal(pattern) for a
/// pattern without a match.
std::vector<std::string> matching(const std::vector<std::string>& names, const std::vector<std::string>& patterns,
                                  const std::function<std::string(const std::string& pattern)>& refusal);

}  // namespace plumbline
