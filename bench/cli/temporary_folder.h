// A place for what child processes write.
#pragma once

#include <filesystem>

namespace plumbline::bench {

/// A folder below the system's for temporary files, for as long as this lives. Throws Error when none can be made.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace plumbline::bench
