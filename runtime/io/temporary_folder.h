// A folder for short-lived files, such as the output of child processes or of tests.
#pragma once

#include <cstdint>
#include <filesystem>

namespace plumbline {

/// A new folder in the system's temporary directory ($TMPDIR, else /tmp), or in `parent`. The destructor removes the
/// folder and its contents and ignores errors. The constructors throw Error if the folder cannot be created.
class TemporaryFolder {
 public:
  TemporaryFolder();
  explicit TemporaryFolder(const std::filesystem::path& parent);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// The system's temporary directory, and the bytes that this process may still write there.
struct TemporaryRoom {
  std::filesystem::path folder;
  uintmax_t bytes = 0;
};
/// Throws InputError if TMPDIR names no folder, Error if the folder cannot be examined.
TemporaryRoom temporary_room();

}  // namespace plumbline
