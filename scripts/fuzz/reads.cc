#include <algorithm>
#include <fstream>

#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "scripts/fuzz/readers.h"

namespace plumbline::fuzz {

const Reader* find_reader(std::string_view name) {
  const auto found = std::ranges::find(readers(), name, &Reader::name);
  return found == readers().end() ? nullptr : &*found;
}

bool reads(const Reader& reader, std::string_view text) {
  try {
    reader.read(text);
    return true;
  } catch (const InputError& error) {
    expect(std::string_view(error.what()).find('\n') == std::string_view::npos, error.what());
    return false;
  }
}

void expect(bool holds, const char* what) { PLUMBLINE_CHECK(holds, what); }

std::filesystem::path file_of(std::string_view text, const char* name) {
  static const TemporaryFolder folder;
  const std::filesystem::path file = folder / name;
  std::filesystem::remove(file);  // some file systems wait for the disk when a file is truncated and written again
  std::ofstream(file, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
  return file;
}

}  // namespace plumbline::fuzz
