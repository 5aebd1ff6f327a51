// The readers of files and texts that come from outside, for the fuzzer and for replaying its corpus. Each either reads
// its input or refuses it with an InputError of one line; what it has read it writes and reads again as the same.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace plumbline::fuzz {

struct Reader {
  const char* name;                     ///< of its folder in scripts/fuzz/corpus
  void (*read)(std::string_view text);  ///< throws InputError for text that it refuses
};

/// In alphabetical order: of the program's parts without LibTorch (readers.cc), or of those with it (torch_readers.cc).
std::span<const Reader> readers();

/// Null if no reader has this name.
const Reader* find_reader(std::string_view name);

/// The memory that a reader may take at one time: this much, and this many times its input. A value of one byte, such
/// as the digit of a list, becomes an object of some tens of bytes, and the readers here hold what they read twice, to
/// compare it.
constexpr size_t kFixedBytes = size_t{4} << 20, kBytesPerByte = 256;

/// Whether the reader took the text. Aborts, with a reason on stderr, if the refusal is not of one line, if what was
/// read is not read again as the same, or if it took more memory than its input accounts for; any exception but
/// InputError passes through.
bool reads(const Reader& reader, std::string_view text);

/// For readers: aborts with this reason unless it holds.
void expect(bool holds, const char* what);

/// For readers: a file with this text, in a folder that lives as long as the program.
std::filesystem::path file_of(std::string_view text, const char* name);

}  // namespace plumbline::fuzz
