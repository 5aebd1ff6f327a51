// SHA-256 (FIPS 180-4). The lock file and manifests pin the bytes of files by it; it equals the output of sha256sum.
#pragma once

#include <string>
#include <string_view>

namespace plumbline {

/// 64 hexadecimal digits.
std::string sha256(std::string_view bytes);

}  // namespace plumbline
