// The readers of files and texts that come from outside, for the fuzzer and for replaying its corpus. Each either reads
// its input or refuses it with an InputError of one line; what it has read it writes and reads again as the same.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace plumbline::fuzz {

struct Reader {
  const char* name;                     ///< of its folder in scripts/fuzz/corpus
  void (*read)(std::string_view text);  ///< throws InputError for text that it refuses
};

/// In alphabetical order.
std::span<const Reader> readers();

/// Null if no reader has this name.
const Reader* find_reader(std::string_view name);

/// Whether the reader took the text. Aborts, with a reason on stderr, if the refusal is not of one line, or if what was
/// read is not read again as the same; any exception but InputError passes through.
bool reads(const Reader& reader, std::string_view text);

}  // namespace plumbline::fuzz
