#include "runtime/io/temporary_folder.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "runtime/error.h"

namespace plumbline {

TemporaryFolder::TemporaryFolder() {
  std::error_code no_folder;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(no_folder);
  if (no_folder) throw Error("cannot create a temporary folder: TMPDIR does not name a folder");
  std::string name = (parent / "plumbline.XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw Error("cannot create a temporary folder at " + name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace plumbline
