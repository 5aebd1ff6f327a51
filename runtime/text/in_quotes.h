// A name in single quotes, as messages show it.
#pragma once

#include <string>
#include <string_view>

namespace plumbline {

inline std::string in_quotes(std::string_view name) { return "'" + std::string(name) + "'"; }

}  // namespace plumbline
