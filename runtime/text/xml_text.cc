#include "runtime/text/xml_text.h"

#include <array>
#include <cstdint>
#include <cstdio>

namespace plumbline {
namespace {

/// Length of the well-formed UTF-8 sequence at the start of `text` if XML 1.0 allows its character; otherwise 0.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  const uint32_t lead = byte(0);
  const size_t length = lead < 0x80 ? 1 : (lead >> 5) == 6 ? 2 : (lead >> 4) == 14 ? 3 : (lead >> 3) == 30 ? 4 : 0;
  if (length == 0 || length > text.size()) return 0;
  if (length == 1) return 1;
  uint32_t code = lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) >> 6) != 2) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr std::array<uint32_t, 5> least = {0, 0, 0x80, 0x800, 0x10000};  // below these a shorter form exists
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  const bool allowed = code >= least[length] && code <= 0x10ffff && !surrogate && code != 0xfffe && code != 0xffff;
  return allowed ? length : 0;
}

}  // namespace

std::string xml_characters(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const size_t length = character_length(text);
    const auto byte = static_cast<unsigned char>(text.front());
    if (length == 0) {
      clean += "\xef\xbf\xbd";
      text.remove_prefix(1);
      continue;
    }
    if (byte == 0x7f || (byte < 0x20 && byte != '\n' && byte != '\t')) {
      std::array<char, 8> escaped;
      std::snprintf(escaped.data(), escaped.size(), "\\x%02x", static_cast<unsigned>(byte));
      clean += escaped.data();
    } else {
      clean.append(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  return clean;
}

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : xml_characters(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace plumbline
