// Formats numbers for messages and pictures.
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

/// `value` with `digits` digits (at most 17) after the point: printf's %f.
inline std::string fixed(double value, int digits) {
  std::array<char, 330> text;  // the largest double has 309 digits before the point
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

/// 0.053 as "5.3 %".
inline std::string percent(double part) { return fixed(100 * part, 1) + " %"; }

}  // namespace plumbline
