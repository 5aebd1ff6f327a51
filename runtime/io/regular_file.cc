#include "runtime/io/regular_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/error.h"

namespace plumbline {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_read(const fs::path& path, const std::string& reason) {
  throw InputError("cannot read " + path.string() + ": " + reason);
}

[[noreturn]] void cannot_read(const fs::path& path) { cannot_read(path, std::strerror(errno)); }

void expect_kind(const fs::path& path, mode_t mode, mode_t kind) {
  if ((mode & S_IFMT) == kind) return;
  cannot_read(path, "it is " + kind_of_file(mode) + "; expected " + kind_of_file(kind));
}

/// Opens `name` in `folder` if it is of that kind. The kind is looked at first, since to open a device has effects, and
/// again afterwards, since another file may have come into its place.
Descriptor open_in(int folder, const std::string& name, const fs::path& path, mode_t kind, bool follow) {
  struct stat found{};
  if (fstatat(folder, name.c_str(), &found, follow ? 0 : AT_SYMLINK_NOFOLLOW) != 0) cannot_read(path);
  expect_kind(path, found.st_mode, kind);
  const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW);
  Descriptor opened(openat(folder, name.c_str(), flags | (kind == S_IFDIR ? O_DIRECTORY : 0)));
  if (!opened) cannot_read(path);
  if (fstat(opened.get(), &found) != 0 || (found.st_mode & S_IFMT) != kind)
    cannot_read(path, "another file came into its place while it was opened");
  return opened;
}

Descriptor open_below(const fs::path& folder, const fs::path& below) {
  if (leads_out(below)) cannot_read(folder / below, "'" + below.string() + "' leads out of the folder");
  const fs::path start = folder.empty() ? fs::path(".") : folder;
  Descriptor at = open_in(AT_FDCWD, start.string(), start, S_IFDIR, true);
  fs::path path = folder;
  for (const fs::path& part : below.parent_path()) {
    path /= part;
    at = open_in(at.get(), part.string(), path, S_IFDIR, false);
  }
  return open_in(at.get(), below.filename().string(), folder / below, S_IFREG, false);
}

int64_t nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

}  // namespace

RegularFile::RegularFile(const fs::path& path)
    : path_(path), descriptor_(open_in(AT_FDCWD, path.string(), path, S_IFREG, true)) {}

RegularFile::RegularFile(const fs::path& folder, const fs::path& below)
    : path_(folder / below), descriptor_(open_below(folder, below)) {}

FileIdentity RegularFile::identity() const {
  struct stat found{};
  if (fstat(descriptor_.get(), &found) != 0) cannot_read(path_);
  return {found.st_dev, found.st_ino, static_cast<uint64_t>(found.st_size), nanoseconds(found.st_mtim),
          nanoseconds(found.st_ctim)};
}

void RegularFile::read(uint64_t offset, void* to, size_t count) const {
  for (size_t done = 0; done < count;) {
    const ssize_t got =
        pread(descriptor_.get(), static_cast<char*>(to) + done, count - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) cannot_read(path_);
    if (got == 0) cannot_read(path_, "it became shorter while it was read");
    done += static_cast<size_t>(got);
  }
}

std::string why_no_folder(const fs::path& folder, const fs::path& below) {
  fs::path path = folder;
  for (const fs::path& part : below) {
    path /= part;
    struct stat found{};
    if (lstat(path.c_str(), &found) != 0) return "";
    if (!S_ISDIR(found.st_mode))
      return "cannot read " + path.string() + ": it is " + kind_of_file(found.st_mode) + "; expected a folder";
  }
  return "";
}

bool leads_out(const fs::path& below) { return below.is_absolute() || std::ranges::find(below, "..") != below.end(); }

std::string kind_of_file(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return "a regular file";
    case S_IFDIR:
      return "a folder";
    case S_IFLNK:
      return "a symbolic link";
    case S_IFIFO:
      return "a FIFO";
    case S_IFSOCK:
      return "a socket";
    case S_IFCHR:
      return "a character device";
    default:
      return "a block device";
  }
}

}  // namespace plumbline
