#include "runtime/io/sha256.h"

#include <openssl/evp.h>

#include <memory>

#include "runtime/error.h"

namespace plumbline {
namespace {

/// One per thread: to look up the algorithm and to allocate takes longer than to hash a short text.
struct Hasher {
  std::unique_ptr<EVP_MD, decltype(&EVP_MD_free)> algorithm{EVP_MD_fetch(nullptr, "SHA256", nullptr), &EVP_MD_free};
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> state{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

}  // namespace

Sha256 sha256_of(std::string_view bytes) {
  static thread_local const Hasher hasher;
  Sha256 digest;
  if (!hasher.algorithm || EVP_DigestInit_ex(hasher.state.get(), hasher.algorithm.get(), nullptr) != 1 ||
      EVP_DigestUpdate(hasher.state.get(), bytes.data(), bytes.size()) != 1 ||
      EVP_DigestFinal_ex(hasher.state.get(), digest.data(), nullptr) != 1)
    throw Error("libcrypto has no SHA-256 here (a provider configuration without the default one?)");
  return digest;
}

std::string sha256(std::string_view bytes) {
  std::string text;
  for (const unsigned char byte : sha256_of(bytes))
    for (const int nibble : {byte >> 4, byte & 15}) text += "0123456789abcdef"[nibble];
  return text;
}

}  // namespace plumbline
