// SHA-256 (FIPS 180-4). The lock file and manifests pin the bytes of files with this hash; sha256sum prints the same.
#pragma once

#include <string>
#include <string_view>

namespace plumbline {

/// Returns the hash as 64 lower-case hexadecimal digits. Throws Error if libcrypto's configuration lacks SHA-256.
std::string sha256(std::string_view bytes);

}  // namespace plumbline
