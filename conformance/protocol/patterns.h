// Shell patterns, separated by commas, that choose among names.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace plumbline::conformance {

std::vector<std::string> split_at_commas(const std::string& text);

/// The names that any of the patterns matches (fnmatch), in their order. For a pattern without a match throws
/// InputError with the text `refusal` makes of it.
std::vector<std::string> matching(const std::vector<std::string>& names, const std::vector<std::string>& patterns,
                                  const std::function<std::string(const std::string& pattern)>& refusal);

}  // namespace plumbline::conformance
