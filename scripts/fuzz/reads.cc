#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

#include "bench/micro/heap_count.h"
#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "scripts/fuzz/readers.h"

namespace plumbline::fuzz {

const Reader* find_reader(std::string_view name) {
  const auto found = std::ranges::find(readers(), name, &Reader::name);
  return found == readers().end() ? nullptr : &*found;
}

namespace {

/// Aborts, with the reason on stderr, if a reader took more memory than its input accounts for.
void expect_bounded(const Reader& reader, std::string_view text, int64_t bytes) {
  const auto limit = static_cast<int64_t>(kFixedBytes + kBytesPerByte * text.size());
  if (bytes <= limit) return;
  const std::string found = std::string(reader.name) + " took " + std::to_string(bytes) + " bytes of memory for " +
                            std::to_string(text.size()) + " bytes of input, expected at most " + std::to_string(limit);
  expect(false, found.c_str());
}

}  // namespace

bool accepts(const Reader& reader, std::string_view text) {
  bool accepted = true;
  const bench::HeapCount heap;
  try {
    reader.read(text);
  } catch (const InputError& error) {
    expect(std::string_view(error.what()).find('\n') == std::string_view::npos, error.what());
    accepted = false;
  }
  expect_bounded(reader, text, heap.peak_bytes());
  return accepted;
}

void expect(bool holds, const char* what) { PLUMBLINE_CHECK(holds, what); }

std::filesystem::path write_temporary_file(std::string_view text, const char* name) {
  static const TemporaryFolder folder;
  const std::filesystem::path file = folder / name;
  std::filesystem::remove(file);  // some file systems wait for the disk when a file is truncated and written again
  std::ofstream(file, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
  return file;
}

}  // namespace plumbline::fuzz
