#include "runtime/text/shortened.h"

#include <algorithm>

namespace plumbline {
namespace {

/// No note of what is left out is longer.
constexpr size_t kNote = 48;

bool continues_a_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

}  // namespace

std::string_view beginning_of(std::string_view text, size_t most) {
  size_t end = std::min(text.size(), most);
  while (end > 0 && end < text.size() && continues_a_character(text[end])) --end;
  return text.substr(0, end);
}

std::string shortened(std::string_view text, size_t most) {
  if (text.size() <= most + kNote) return std::string(text);
  const std::string_view kept = beginning_of(text, most);
  const auto left = text.size() - kept.size() - std::ranges::count_if(text.substr(kept.size()), continues_a_character);
  std::string line(kept);
  line += "... (" + std::to_string(left) + " more characters)";
  return line;
}

}  // namespace plumbline
