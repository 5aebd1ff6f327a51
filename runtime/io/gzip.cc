#include "runtime/io/gzip.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "runtime/error.h"
#include "runtime/io/descriptor.h"
#include "runtime/io/regular_file.h"

namespace plumbline {
namespace {

struct Close {
  void operator()(gzFile file) const { gzclose(file); }
};
using File = std::unique_ptr<gzFile_s, Close>;

/// zlib sets errno for a system error and has its own message for bad data.
std::string reason(gzFile file) {
  int code = Z_ERRNO;
  const char* text = file == nullptr ? nullptr : gzerror(file, &code);
  if (code == Z_ERRNO) return errno == 0 ? "out of memory" : std::strerror(errno);
  return "damaged gzip (" + std::string(text) + ")";
}

constexpr unsigned piece = 1 << 20;

/// The largest text: what any machine has room for, and for each byte that gzip made of it. Recorded graphs have up to
/// 50; a bomb has about 1000.
constexpr size_t kAnyText = size_t{64} << 20, kUnpackedBytes = 200;

/// The most bytes of a pipe: far more than any text has.
constexpr size_t kMostPiped = size_t{1} << 30;

/// Reads a pipe to its end into a file in memory.
Descriptor copied(const Descriptor& pipe, std::chrono::seconds silence, const std::string& path) {
  Descriptor copy(memfd_create("plumbline pipe", MFD_CLOEXEC));
  std::string why = copy ? "" : std::strerror(errno);
  std::vector<char> bytes(size_t{1} << 16);
  for (size_t total = 0; why.empty();) {
    pollfd event{pipe.get(), POLLIN, 0};
    const int ready = poll(&event, 1, static_cast<int>(1000 * silence.count()));
    if (ready < 0 && errno == EINTR) continue;
    const ssize_t count = ready > 0 ? read(pipe.get(), bytes.data(), bytes.size()) : -1;
    if (count == 0) break;  // all writers have closed it
    if (ready == 0)
      why = "a pipe from which nothing came for " + std::to_string(silence.count()) + " s";
    else if (count < 0 && errno != EAGAIN && errno != EINTR)
      why = std::strerror(errno);
    else if (count > 0 && (total += static_cast<size_t>(count)) > kMostPiped)
      why = "a pipe of more than 1 GiB";
    else if (count > 0 && write(copy.get(), bytes.data(), static_cast<size_t>(count)) != count)
      why = "a pipe, and there is no memory for its bytes";
  }
  if (!why.empty()) throw InputError("cannot read " + path + ": " + why);
  lseek(copy.get(), 0, SEEK_SET);
  return copy;
}

/// Opens a file, or a pipe without waiting for a writer.
Descriptor opened(const std::string& path, std::chrono::seconds silence) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  struct stat found{};
  if (!file || fstat(file.get(), &found) != 0) throw InputError("cannot read " + path + ": " + std::strerror(errno));
  if (S_ISREG(found.st_mode)) return file;
  if (S_ISFIFO(found.st_mode) || S_ISSOCK(found.st_mode)) return copied(file, silence, path);
  throw InputError("cannot read " + path + ": it is " + kind_of_file(found.st_mode) + "; expected a file or a pipe");
}

}  // namespace

std::string read_text(const std::string& path, std::chrono::seconds silence) {
  Descriptor descriptor = opened(path, silence);
  errno = 0;
  const File file(gzdopen(descriptor.get(), "rb"));
  if (!file) throw InputError("cannot read " + path + ": " + reason(nullptr));
  descriptor.release();  // the file closes it
  gzbuffer(file.get(), 1 << 17);
  std::string text;
  for (;;) {
    const size_t old = text.size();
    text.resize(old + piece);
    const int count = gzread(file.get(), text.data() + old, piece);
    text.resize(old + static_cast<size_t>(std::max(count, 0)));
    // gzread reports a truncated file only after its last readable byte.
    int code = Z_OK;
    if (count < static_cast<int>(piece)) gzerror(file.get(), &code);
    if (count < 0 || (code != Z_OK && code != Z_STREAM_END))
      throw InputError("cannot read " + path + ": " + reason(file.get()));
    if (count == 0) return text;
    if (const auto packed = static_cast<size_t>(gzoffset(file.get())); text.size() > kUnpackedBytes * packed + kAnyText)
      throw InputError("cannot read " + path + ": it unpacks to more than " + std::to_string(kUnpackedBytes) +
                       " times its bytes");
  }
}

void write_text(const std::string& path, const std::string& text) {
  namespace fs = std::filesystem;
  // A pipe or device is written directly; a regular file is replaced as a whole.
  std::error_code error;
  const fs::file_type type = fs::symlink_status(path, error).type();
  const bool replace = type == fs::file_type::not_found || type == fs::file_type::regular;
  const std::string written = replace ? path + ".tmp." + std::to_string(getpid()) : path;
  const auto refuse = [&](const std::string& why) {
    if (replace) fs::remove(written, error);
    throw InputError("cannot write " + path + ": " + why);
  };
  errno = 0;
  File file(gzopen(written.c_str(), path.ends_with(".gz") ? "wb9" : "wbT"));
  if (!file) refuse(reason(nullptr));
  for (size_t begin = 0; begin < text.size(); begin += piece) {
    const auto count = static_cast<unsigned>(std::min<size_t>(piece, text.size() - begin));
    if (gzwrite(file.get(), text.data() + begin, count) != static_cast<int>(count)) refuse(reason(file.get()));
  }
  // Closing flushes the buffer, so that a full disk is noticed.
  if (gzclose(file.release()) != Z_OK) refuse(reason(nullptr));
  if (!replace) return;
  fs::rename(written, path, error);
  if (error) refuse(error.message());
}

}  // namespace plumbline
