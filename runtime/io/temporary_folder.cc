#include "runtime/io/temporary_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "runtime/error.h"

namespace plumbline {

namespace {

std::filesystem::path system_folder() {
  std::error_code no_folder;
  std::filesystem::path folder = std::filesystem::temp_directory_path(no_folder);
  if (no_folder) throw InputError("cannot create a temporary folder: TMPDIR does not name a folder");
  return folder;
}

}  // namespace

TemporaryFolder::TemporaryFolder() : TemporaryFolder(system_folder()) {}

TemporaryFolder::TemporaryFolder(const std::filesystem::path& parent) {
  std::string name = (parent / "plumbline.XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr)
    throw Error("cannot create a temporary folder at " + name + ": " + std::strerror(errno));
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

TemporaryRoom temporary_room() {
  const std::filesystem::path folder = system_folder();
  std::error_code unknown;
  const std::filesystem::space_info found = std::filesystem::space(folder, unknown);
  if (unknown) throw Error("cannot examine the temporary folder " + folder.string() + ": " + unknown.message());
  return {folder, found.available};
}

}  // namespace plumbline
