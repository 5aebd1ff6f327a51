#include "runtime/io/write_text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <system_error>

#include "runtime/error.h"
#include "runtime/io/regular_file.h"

namespace plumbline {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& reason) {
  throw InputError("cannot write " + path.string() + ": " + reason);
}

/// Length of the well-formed UTF-8 sequence at the start of `text` if XML 1.0 allows its character; otherwise 0.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  const uint32_t lead = byte(0);
  const size_t length = lead < 0x80 ? 1 : (lead >> 5) == 6 ? 2 : (lead >> 4) == 14 ? 3 : (lead >> 3) == 30 ? 4 : 0;
  if (length == 0 || length > text.size()) return 0;
  if (length == 1) return 1;
  uint32_t code = lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) >> 6) != 2) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr std::array<uint32_t, 5> least = {0, 0, 0x80, 0x800, 0x10000};  // below these a shorter form exists
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  const bool allowed = code >= least[length] && code <= 0x10ffff && !surrogate && code != 0xfffe && code != 0xffff;
  return allowed ? length : 0;
}

}  // namespace

void write_text_file(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::path temporary = path;
  temporary += ".tmp." + std::to_string(getpid());
  std::error_code error;
  {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    if (!file) refuse(path, std::strerror(errno));
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.close();
    if (!file) {
      const std::string reason = std::strerror(errno);
      std::filesystem::remove(temporary, error);
      refuse(path, reason);
    }
  }
  std::filesystem::rename(temporary, path, error);
  if (error) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    refuse(path, error.message());
  }
}

void append_text_file(const std::filesystem::path& path, std::string_view text) {
  // Another program may have put a FIFO or a link in its place.
  const int file =
      open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK, 0666);
  struct stat found{};
  if (file < 0) {
    const std::string reason = std::strerror(errno);
    const bool is_other = lstat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode);
    refuse(path, is_other ? "it is " + kind_of_file(found.st_mode) : reason);
  }
  std::string reason = fstat(file, &found) != 0 ? std::strerror(errno) : "";
  if (reason.empty() && !S_ISREG(found.st_mode)) reason = "it is " + kind_of_file(found.st_mode);
  while (reason.empty() && !text.empty()) {
    const ssize_t count = write(file, text.data(), text.size());
    if (count >= 0)
      text.remove_prefix(static_cast<size_t>(count));
    else if (errno != EINTR)
      reason = std::strerror(errno);
  }
  if (close(file) != 0 && reason.empty()) reason = std::strerror(errno);
  if (!reason.empty()) refuse(path, reason);
}

std::string xml_characters(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const size_t length = character_length(text);
    const auto byte = static_cast<unsigned char>(text.front());
    if (length == 0) {
      clean += "\xef\xbf\xbd";
      text.remove_prefix(1);
      continue;
    }
    if (byte == 0x7f || (byte < 0x20 && byte != '\n' && byte != '\t')) {
      std::array<char, 8> escaped;
      std::snprintf(escaped.data(), escaped.size(), "\\x%02x", static_cast<unsigned>(byte));
      clean += escaped.data();
    } else {
      clean.append(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  return clean;
}

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : xml_characters(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace plumbline
