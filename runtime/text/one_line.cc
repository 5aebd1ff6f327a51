#include "runtime/text/one_line.h"

#include <array>
#include <cstdio>

namespace plumbline {

std::string one_line(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n' || c == '\r' || c == '\t') {
      line += ' ';
    } else if (byte < 0x20 || byte == 0x7f) {
      std::array<char, 8> escaped;
      std::snprintf(escaped.data(), escaped.size(), "\\x%02x", static_cast<unsigned>(byte));
      line += escaped.data();
    } else {
      line += c;
    }
  }
  return line;
}

}  // namespace plumbline
