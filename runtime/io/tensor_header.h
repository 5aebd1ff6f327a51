// The header of a safetensors file: which tensors the file has, and where. Everything is checked against the size of
// the file before any of its data is read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/types/types.h"

namespace plumbline {

/// The element type with this name in the format; null for an unknown name.
const types::DtypeInfo* find_dtype(std::string_view name);

/// find_dtype(). Throws InputError, prefixed with `where`, for an unknown name.
const types::DtypeInfo& known_dtype(std::string_view name, const std::string& where);

/// The number of bytes that dtype and shape require. Throws InputError, prefixed with `where`, if it overflows, if a
/// size is negative, or for more than 32 dimensions.
uint64_t byte_count(const types::DtypeInfo& dtype, const std::vector<int64_t>& shape, const std::string& where);

/// A tensor in a file; offsets count from the end of the header.
struct TensorEntry {
  std::string name;
  const types::DtypeInfo* dtype = nullptr;
  std::vector<int64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// The number of bytes at the beginning of a file that hold the length of its header.
constexpr uint64_t kHeaderLengthBytes = 8;

/// Reserved for metadata, which is dropped.
constexpr const char* kMetadataKey = "__metadata__";

/// Returns the header's length. `bytes` are the first `count` bytes of a file of `file_bytes`. Throws InputError,
/// prefixed with `source`, if `count` is below kHeaderLengthBytes or the file cannot have a header of that length.
uint64_t header_length(const char* bytes, uint64_t count, uint64_t file_bytes, const std::string& source);

/// Parses the header of a file that has `data_bytes` behind it; returns the tensors in name order. Throws InputError,
/// prefixed with `source`, unless the tensors are well-formed and tile the data.
std::vector<TensorEntry> parse_tensor_header(std::string_view text, uint64_t data_bytes, const std::string& source);

}  // namespace plumbline
