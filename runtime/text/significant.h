// Numbers in messages and pictures.
#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace plumbline {

/// `value` with at most `digits` significant digits (at most 17), without trailing zeros: printf's %g.
inline std::string significant(double value, int digits) {
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), "%.*g", digits, value);
  return text.data();
}

}  // namespace plumbline
