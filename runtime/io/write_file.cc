#include "runtime/io/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "runtime/io/descriptor.h"
#include "runtime/io/regular_file.h"

namespace plumbline {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& reason) {
  throw WriteError("cannot write " + path.string() + ": " + reason);
}

/// Writes all bytes and closes the descriptor. Returns the reason of a failure.
std::string write_and_close(Descriptor file, std::string_view bytes) {
  std::string reason;
  while (reason.empty() && !bytes.empty()) {
    const ssize_t count = write(file.get(), bytes.data(), bytes.size());
    if (count >= 0)
      bytes.remove_prefix(static_cast<size_t>(count));
    else if (errno != EINTR)
      reason = std::strerror(errno);
  }
  if (close(file.release()) != 0 && reason.empty()) reason = std::strerror(errno);
  return reason;
}

}  // namespace

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  static std::atomic<unsigned> counter{0};
  std::filesystem::path temporary = path;
  temporary += ".tmp." + std::to_string(getpid()) + "." + std::to_string(counter++);
  // What is there was left by a process with the same number, or planted as a link to elsewhere.
  unlink(temporary.c_str());
  // A user who names a device, such as /dev/full, does not want it replaced.
  struct stat found{};
  if (lstat(path.c_str(), &found) == 0 && (S_ISCHR(found.st_mode) || S_ISBLK(found.st_mode)))
    refuse(path, "it is " + kind_of_file(found.st_mode));
  Descriptor file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file) refuse(path, std::strerror(errno));
  std::string reason = write_and_close(std::move(file), bytes);
  if (reason.empty() && rename(temporary.c_str(), path.c_str()) != 0) reason = std::strerror(errno);
  if (reason.empty()) return;
  unlink(temporary.c_str());
  refuse(path, reason);
}

void append_file(const std::filesystem::path& path, std::string_view bytes) {
  // Another program may have put a FIFO or a link in its place.
  Descriptor file(
      open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK, 0666));
  struct stat found{};
  if (!file) {
    const std::string reason = std::strerror(errno);
    const bool is_other = lstat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode);
    refuse(path, is_other ? "it is " + kind_of_file(found.st_mode) : reason);
  }
  std::string reason = fstat(file.get(), &found) != 0 ? std::strerror(errno) : "";
  if (reason.empty() && !S_ISREG(found.st_mode)) reason = "it is " + kind_of_file(found.st_mode);
  if (reason.empty()) reason = write_and_close(std::move(file), bytes);
  if (!reason.empty()) refuse(path, reason);
}

void create_folders(const std::filesystem::path& folder, const std::filesystem::path& below) {
  if (leads_out(below)) refuse(folder / below, "'" + below.string() + "' leads out of the folder");
  std::filesystem::path made = folder;
  for (const std::filesystem::path& part : below) {
    made /= part;
    if (mkdir(made.c_str(), 0777) == 0) continue;
    const std::string reason = std::strerror(errno);
    if (errno != EEXIST) refuse(made, reason);
    struct stat found{};
    if (lstat(made.c_str(), &found) != 0) refuse(made, std::strerror(errno));
    if (!S_ISDIR(found.st_mode)) refuse(made, "it is " + kind_of_file(found.st_mode));
  }
}

}  // namespace plumbline
