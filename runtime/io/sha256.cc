#include "runtime/io/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "runtime/error.h"

namespace plumbline {

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1)
    throw Error("libcrypto has no SHA-256 here (a provider configuration without the default one?)");
  std::string text;
  for (unsigned int i = 0; i < size; ++i)
    for (const int nibble : {digest[i] >> 4, digest[i] & 15}) text += "0123456789abcdef"[nibble];
  return text;
}

}  // namespace plumbline
