// SHA-256 (FIPS 180-4), by which the lock file and manifests pin the bytes of files; the same as sha256sum prints.
#pragma once

#include <string>
#include <string_view>

namespace plumbline {

/// 64 hexadecimal digits.
std::string sha256(std::string_view bytes);

}  // namespace plumbline
