#include "runtime/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "runtime/error.h"

namespace plumbline {
namespace {

struct Close {
  void operator()(gzFile file) const { gzclose(file); }
};
using File = std::unique_ptr<gzFile_s, Close>;

/// zlib sets errno where the system refused, and a text of its own where the data is at fault.
std::string reason(gzFile file) {
  int code = Z_ERRNO;
  const char* text = file == nullptr ? nullptr : gzerror(file, &code);
  if (code == Z_ERRNO) return errno == 0 ? "out of memory" : std::strerror(errno);
  return "damaged gzip (" + std::string(text) + ")";
}

File open(const std::string& path, const char* mode, const char* verb) {
  errno = 0;
  File file(gzopen(path.c_str(), mode));
  if (!file) throw InputError("cannot " + std::string(verb) + " " + path + ": " + reason(nullptr));
  return file;
}

constexpr unsigned piece = 1 << 20;

}  // namespace

std::string read_text(const std::string& path) {
  const File file = open(path, "rb", "read");
  gzbuffer(file.get(), 1 << 17);
  std::string text;
  for (;;) {
    const size_t old = text.size();
    text.resize(old + piece);
    const int count = gzread(file.get(), text.data() + old, piece);
    text.resize(old + static_cast<size_t>(std::max(count, 0)));
    // A file that ends early is read to its end before zlib says so.
    int code = Z_OK;
    if (count < static_cast<int>(piece)) gzerror(file.get(), &code);
    if (count < 0 || (code != Z_OK && code != Z_STREAM_END))
      throw InputError("cannot read " + path + ": " + reason(file.get()));
    if (count == 0) return text;
  }
}

void write_text(const std::string& path, const std::string& text) {
  File file = open(path, path.ends_with(".gz") ? "wb9" : "wbT", "write");
  for (size_t begin = 0; begin < text.size(); begin += piece) {
    const auto count = static_cast<unsigned>(std::min<size_t>(piece, text.size() - begin));
    if (gzwrite(file.get(), text.data() + begin, count) != static_cast<int>(count))
      throw InputError("cannot write " + path + ": " + reason(file.get()));
  }
  // What is still buffered is written now, so that a full disk is noticed.
  if (gzclose(file.release()) != Z_OK) throw InputError("cannot write " + path + ": " + reason(nullptr));
}

}  // namespace plumbline
