#include "runtime/text/one_line.h"

#include <array>
#include <cstdio>

namespace plumbline {
namespace {

/// A character of two or three bytes in UTF-8 at the beginning of `text`; 0 without one.
struct Wide {
  unsigned code = 0;
  size_t bytes = 0;
};

Wide wide_at(std::string_view text) {
  const auto bits = [&](size_t i, unsigned mask) { return static_cast<unsigned char>(text[i]) & mask; };
  const auto continues = [&](size_t i) { return i < text.size() && bits(i, 0xc0) == 0x80; };
  if (bits(0, 0xe0) == 0xc0 && continues(1)) return {bits(0, 0x1f) << 6 | bits(1, 0x3f), 2};
  if (bits(0, 0xf0) == 0xe0 && continues(1) && continues(2))
    return {bits(0, 0x0f) << 12 | bits(1, 0x3f) << 6 | bits(2, 0x3f), 3};
  return {};
}

/// C1, separators of lines, and what turns the direction of the text that follows (Unicode's Bidi_Control).
bool controls_a_terminal(unsigned code) {
  const auto in = [&](unsigned first, unsigned last) { return first <= code && code <= last; };
  return in(0x80, 0x9f) || code == 0x61c || in(0x200e, 0x200f) || in(0x2028, 0x202e) || in(0x2066, 0x2069);
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  const auto escape = [&](const char* form, unsigned code) {
    std::array<char, 12> escaped;
    std::snprintf(escaped.data(), escaped.size(), form, code);
    line += escaped.data();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '\n' || byte == '\r' || byte == '\t') {
      line += ' ';
    } else if (byte < 0x20 || byte == 0x7f) {
      escape("\\x%02x", byte);
    } else if (const Wide wide = byte < 0x80 ? Wide() : wide_at(text.substr(i)); controls_a_terminal(wide.code)) {
      escape("\\u%04x", wide.code);
      i += wide.bytes - 1;
    } else {
      line += text[i];
    }
  }
  return line;
}

}  // namespace plumbline
