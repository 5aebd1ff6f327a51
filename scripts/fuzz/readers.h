// The readers of files and texts that come from outside, for the fuzzer and for replaying its corpus. A reader parses
// its input, or refuses it with an InputError of one line. If we also write the format, most readers write what they
// have parsed, parse the result, and expect() that both are the same; the other readers only parse.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace plumbline::fuzz {

struct Reader {
  const char* name;                     ///< the name of the reader and of its folder in scripts/fuzz/corpus
  void (*read)(std::string_view text);  ///< throws InputError for text that it refuses; for one thread at a time
};

/// The readers of this program by name, in alphabetical order; valid as long as the program runs. There are two
/// definitions, of which a program links one: readers.cc (what needs no LibTorch) or torch_readers.cc (what does).
std::span<const Reader> readers();

/// Returns the entry of readers() with this name, or null if there is none.
const Reader* find_reader(std::string_view name);

/// A reader may hold at most kFixedBytes + kBytesPerByte x (bytes of its input) bytes at one time. The factor is large
/// because a value of one byte, such as a digit in a list, becomes an object of some tens of bytes, and because readers
/// that compare hold what they parsed twice.
constexpr size_t kFixedBytes = size_t{4} << 20, kBytesPerByte = 256;

/// Runs the reader. Returns whether it accepts the text; false: it threw InputError. Aborts, with a reason on stderr,
/// if the InputError has more than one line, if an expect() of the reader fails, or if the reader exceeds its memory.
/// Any other exception passes through.
bool accepts(const Reader& reader, std::string_view text);

/// For readers: aborts, with `what` on stderr, unless `holds`.
void expect(bool holds, const char* what);

/// For readers: writes `text` to the file `name` in a temporary folder, and returns the path. Replaces an earlier file
/// of that name. The folder lives as long as the program. A failure to write is not reported.
std::filesystem::path write_temporary_file(std::string_view text, const char* name);

}  // namespace plumbline::fuzz
