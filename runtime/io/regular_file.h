// A file that another program wrote, opened so that nothing in its place makes the reader wait (a FIFO, a device) or
// leads it elsewhere (a link).
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "runtime/io/descriptor.h"

namespace plumbline {

/// Tells whether a file was written between two looks at it, without reading it.
struct FileIdentity {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t modified = 0, changed = 0;  ///< ns since 1970: of its content, and of its content or its inode

  bool operator==(const FileIdentity&) const = default;
};

/// An open regular file. Move-only.
class RegularFile {
 public:
  /// Opens a file that the user names: links are followed. Throws InputError, which names the file and what is there
  /// instead, unless it is a regular file that can be read.
  explicit RegularFile(const std::filesystem::path& path);
  /// Opens `folder / below`. Also throws InputError for a link below `folder`, whether it is the file or a folder on
  /// the way, and for a `below` that leads_out().
  RegularFile(const std::filesystem::path& folder, const std::filesystem::path& below);

  const std::filesystem::path& path() const { return path_; }
  /// As of now.
  FileIdentity identity() const;
  uint64_t size() const { return identity().size; }
  /// Copies the bytes [offset, offset + count) to `to`. Throws InputError if the file has fewer, or cannot be read.
  void read(uint64_t offset, void* to, size_t count) const;

 private:
  std::filesystem::path path_;
  Descriptor descriptor_;
};

/// Returns an error line that names the first part of `below` that is not a folder (a link, for example); empty if the
/// parts are folders, up to the last or to one that does not exist.
std::string why_no_folder(const std::filesystem::path& folder, const std::filesystem::path& below);

/// Whether `below` names something outside the folder that it is relative to: an absolute path, or one with "..".
bool leads_out(const std::filesystem::path& below);

/// "a folder", "a FIFO", "a symbolic link": the kind of file in st_mode.
std::string kind_of_file(mode_t mode);

}  // namespace plumbline
