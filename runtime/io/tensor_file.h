// Tensors in host memory and in the safetensors file format, without torch; for files and messages.
//
// Format (https://github.com/huggingface/safetensors): 8 bytes little-endian header length; a JSON object from tensor
// name to {dtype, shape, data_offsets}; the data, with offsets from the end of the header. The writer pads the header
// with spaces to a multiple of 8 and stores the data in name order without gaps, so that equal maps give equal bytes
// and cmp can compare two result files. The reader is strict: it rejects everything that the format forbids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/io/regular_file.h"

namespace plumbline {

/// A dense row-major tensor in host memory, little-endian.
struct HostTensor {
  std::string dtype;           ///< safetensors name: F64 F32 F16 BF16 I64 I32 I16 I8 U64 U32 U16 U8 BOOL
  std::vector<int64_t> shape;  ///< empty for a scalar
  std::vector<std::byte> data;

  bool operator==(const HostTensor&) const = default;
};

using TensorMap = std::map<std::string, HostTensor>;

/// Returns the bytes of one element, or 0 if `dtype` is not a name listed at HostTensor::dtype.
size_t element_size(std::string_view dtype);

/// Returns whether `dtype` is F64, F32, F16 or BF16.
bool is_floating(std::string_view dtype);

/// Returns half the distance from 1 to the next larger number of the dtype. Aborts unless is_floating().
double unit_roundoff(std::string_view dtype);

/// Returns the number of elements of the shape (1 for a scalar). Sizes must not be negative; overflow is not checked.
int64_t element_count(const HostTensor& tensor);

/// Returns element `index` (row-major) as a double: exact for every dtype but I64 and U64 beyond 2^53. BOOL gives 0 or
/// 1. Aborts if the dtype is unknown or the index is out of range.
double element_as_double(const HostTensor& tensor, int64_t index);

/// Appends `value`, rounded to the dtype, to the data; the shape stays. Aborts unless is_floating().
void append_element(HostTensor& tensor, double value);

/// Returns dtype and shape in short form: "f32[2,8]", "i64[]".
std::string describe(const HostTensor& tensor);

/// Returns an F64 tensor of `values`, in row-major order. Aborts if their number does not match the shape.
HostTensor make_f64(std::vector<int64_t> shape, const std::vector<double>& values);

/// Returns the bytes of a safetensors file with `tensors`. Throws InputError for a tensor that the format cannot hold
/// (unknown dtype, data that does not match the shape, a name that is not UTF-8 or is the reserved "__metadata__").
std::string encode_tensors(const TensorMap& tensors);

/// Parses the bytes of a safetensors file; "__metadata__" is accepted and dropped. Throws InputError, prefixed with
/// `source` (a file name, for example), unless the bytes are exactly one well-formed file.
TensorMap decode_tensors(std::string_view bytes, const std::string& source);

/// Returns the bytes of a regular file. Throws InputError naming the file and the reason if it cannot be read, is
/// another kind of file, or does not fit into memory.
std::string read_file(const std::filesystem::path& path);
std::string read_file(const RegularFile& file);

/// Writes encode_tensors(tensors) with write_file(); throws as both do.
void write_tensor_file(const std::filesystem::path& path, const TensorMap& tensors);

/// Reads a safetensors file of at most `most_bytes`: first its size, then its header, and its data only if they agree.
/// Throws InputError, which names the file and the reason, also if the file does not fit into memory.
TensorMap read_tensors(const RegularFile& file, uint64_t most_bytes = std::numeric_limits<uint64_t>::max());

/// Returns read_tensors() of a file that the user names.
TensorMap read_tensor_file(const std::filesystem::path& path);

}  // namespace plumbline
