// Tensors on disk and in transit, without torch: host memory, and the safetensors file format.
//
// Format (https://github.com/huggingface/safetensors): 8 bytes little-endian header length; a JSON object from tensor
// name to {dtype, shape, data_offsets}; the data, offsets counted from the end of the header. The writer pads the
// header with spaces to a multiple of 8 and stores the data in name order without gaps, so that equal maps give equal
// bytes and cmp can compare two result files. The reader is strict: it refuses anything that the format does not allow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline {

/// A dense row-major tensor in host memory, little-endian.
struct HostTensor {
  std::string dtype;           ///< safetensors name: F64 F32 F16 BF16 I64 I32 I16 I8 U64 U32 U16 U8 BOOL
  std::vector<int64_t> shape;  ///< empty for a scalar
  std::vector<std::byte> data;

  bool operator==(const HostTensor&) const = default;
};

using TensorMap = std::map<std::string, HostTensor>;

/// Bytes of one element; 0 for a dtype that is not in the list above.
size_t element_size(std::string_view dtype);

/// F64, F32, F16 or BF16.
bool is_floating(std::string_view dtype);

/// Number of elements of the shape (1 for a scalar). Sizes must not be negative.
int64_t element_count(const HostTensor& tensor);

/// Element `index` (row-major) as a double: exact for every dtype but I64 and U64 beyond 2^53. BOOL gives 0 or 1.
double element_as_double(const HostTensor& tensor, int64_t index);

/// Dtype and shape in short form: "f32[2,8]", "i64[]".
std::string describe(const HostTensor& tensor);

/// An F64 tensor from values in row-major order; their number must match the shape.
HostTensor make_f64(std::vector<int64_t> shape, const std::vector<double>& values);

/// The bytes of a safetensors file that holds `tensors`. Throws InputError for a tensor that the format cannot hold
/// (unknown dtype, data that does not match the shape, a name that is not UTF-8 or is the reserved "__metadata__").
std::string encode_tensors(const TensorMap& tensors);

/// Parses the bytes of a safetensors file; `source` (a file name, say) prefixes every error. "__metadata__" is accepted
/// and dropped. Throws InputError when the bytes are not exactly one well-formed safetensors file.
TensorMap decode_tensors(std::string_view bytes, const std::string& source);

/// Writes bytes to a temporary name in the same folder, then renames it: a reader sees the whole file or none. Throws
/// InputError when the path is not writable, Error when writing fails half-way (a full disk).
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// The bytes of a file. Throws InputError naming the file and the reason.
std::string read_file(const std::filesystem::path& path);

/// write_file() of encode_tensors().
void write_tensor_file(const std::filesystem::path& path, const TensorMap& tensors);

/// decode_tensors() of read_file().
TensorMap read_tensor_file(const std::filesystem::path& path);

}  // namespace plumbline
