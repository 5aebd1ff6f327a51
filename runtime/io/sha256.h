// SHA-256 (FIPS 180-4). The lock file and manifests pin the bytes of files with this hash; sha256sum prints the same.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace plumbline {

using Sha256 = std::array<unsigned char, 32>;

/// Returns the hash. Throws Error if libcrypto's configuration lacks SHA-256.
Sha256 sha256_of(std::string_view bytes);

/// The hash as 64 lower-case hexadecimal digits. Throws as sha256_of() does.
std::string sha256(std::string_view bytes);

}  // namespace plumbline
