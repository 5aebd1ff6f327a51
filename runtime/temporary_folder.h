// A place for files that nobody needs afterwards: what child processes hand over, what tests write.
#pragma once

#include <filesystem>

namespace plumbline {

/// A new folder below the system's for temporary files, removed with all that is in it when this ends. Throws Error
/// when none can be made.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace plumbline
