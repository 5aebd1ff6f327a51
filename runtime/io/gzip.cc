#include "runtime/io/gzip.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "runtime/error.h"

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

}  // namespace

std::string read_text(const std::string& path) {
  errno = 0;
  const File file(gzopen(path.c_str(), "rb"));
  if (!file) throw InputError("cannot read " + path + ": " + reason(nullptr));
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
