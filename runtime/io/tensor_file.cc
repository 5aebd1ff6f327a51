#include "runtime/io/tensor_file.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/error.h"
#include "runtime/io/json_place.h"
#include "runtime/io/tensor_header.h"
#include "runtime/io/write_file.h"
#include "runtime/types/float_bits.h"

namespace plumbline {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor files are read and written without byte swaps");

template <typename T>
T load(const HostTensor& tensor, int64_t index) {
  T value;
  std::memcpy(&value, tensor.data.data() + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

/// Runs `body`, which allocates `size` bytes for a file. Throws InputError naming the file when there is too little
/// memory: the kernel would grant more, and kill the process when it is used.
template <typename Body>
void within_memory(const RegularFile& file, uint64_t size, const Body& body) {
  const auto too_little = [&] {
    return InputError("cannot read " + file.path().string() + ": no memory for its " + std::to_string(size) + " bytes");
  };
  if (size / static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) >= static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)))
    throw too_little();
  try {
    body();
  } catch (const std::bad_alloc&) {
    throw too_little();
  }
}

}  // namespace

size_t element_size(std::string_view dtype) {
  const types::DtypeInfo* info = find_dtype(dtype);
  return info == nullptr ? 0 : info->bytes;
}

bool is_floating(std::string_view dtype) {
  const types::DtypeInfo* info = find_dtype(dtype);
  return info != nullptr && info->floating;
}

double unit_roundoff(std::string_view dtype) {
  PLUMBLINE_CHECK(is_floating(dtype), std::string(dtype));
  return std::ldexp(1.0, -find_dtype(dtype)->digits);
}

int64_t element_count(const HostTensor& tensor) {
  int64_t count = 1;
  for (const int64_t size : tensor.shape) count *= size;
  return count;
}

double element_as_double(const HostTensor& tensor, int64_t index) {
  const size_t size = element_size(tensor.dtype);
  PLUMBLINE_CHECK(size != 0 && index >= 0 && (static_cast<size_t>(index) + 1) * size <= tensor.data.size(),
                  "element " + std::to_string(index) + " of " + describe(tensor));
  if (tensor.dtype == "F32") return load<float>(tensor, index);
  if (tensor.dtype == "F64") return load<double>(tensor, index);
  if (is_floating(tensor.dtype)) return types::value_of_bits(load<uint16_t>(tensor, index), *find_dtype(tensor.dtype));
  if (tensor.dtype == "I64") return static_cast<double>(load<int64_t>(tensor, index));
  if (tensor.dtype == "I32") return load<int32_t>(tensor, index);
  if (tensor.dtype == "I16") return load<int16_t>(tensor, index);
  if (tensor.dtype == "U64") return static_cast<double>(load<uint64_t>(tensor, index));
  if (tensor.dtype == "U32") return load<uint32_t>(tensor, index);
  if (tensor.dtype == "U16") return load<uint16_t>(tensor, index);
  if (tensor.dtype == "I8") return load<int8_t>(tensor, index);
  const uint8_t byte = load<uint8_t>(tensor, index);
  return tensor.dtype == "BOOL" ? (byte != 0 ? 1.0 : 0.0) : byte;
}

void append_element(HostTensor& tensor, double value) {
  PLUMBLINE_CHECK(is_floating(tensor.dtype), describe(tensor));
  const uint64_t bits = types::nearest_bits(value, *find_dtype(tensor.dtype));
  const auto* const bytes = reinterpret_cast<const std::byte*>(&bits);
  tensor.data.insert(tensor.data.end(), bytes, bytes + element_size(tensor.dtype));
}

std::string describe(const HostTensor& tensor) {
  std::string text;
  for (const char c : tensor.dtype) text += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  text += '[';
  for (size_t i = 0; i < tensor.shape.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(tensor.shape[i]);
  return text + ']';
}

HostTensor make_f64(std::vector<int64_t> shape, const std::vector<double>& values) {
  HostTensor tensor{"F64", std::move(shape), std::vector<std::byte>(values.size() * sizeof(double))};
  PLUMBLINE_CHECK(element_count(tensor) == static_cast<int64_t>(values.size()), describe(tensor));
  if (!values.empty()) std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
  return tensor;
}

std::string encode_tensors(const TensorMap& tensors) {
  nlohmann::json header = nlohmann::json::object();
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const std::string where = "tensor `" + name + "`";
    if (name == kMetadataKey) throw InputError(where + ": the name is reserved by the file format");
    const uint64_t wanted = byte_count(known_dtype(tensor.dtype, where), tensor.shape, where);
    if (wanted != tensor.data.size())
      throw InputError(where + ": " + describe(tensor) + " takes " + std::to_string(wanted) + " bytes, it has " +
                       std::to_string(tensor.data.size()));
    header[name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + wanted}}};
    offset += wanted;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception& error) {
    throw InputError("a tensor name is not UTF-8: " + json_reason(error));
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  bytes.reserve(bytes.size() + text.size() + offset);
  bytes += text;
  for (const auto& [name, tensor] : tensors)
    bytes.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  return bytes;
}

TensorMap decode_tensors(std::string_view bytes, const std::string& source) {
  const uint64_t length = header_length(bytes.data(), bytes.size(), bytes.size(), source);
  const std::string_view data = bytes.substr(kHeaderLengthBytes + length);
  TensorMap tensors;
  for (TensorEntry& entry : parse_tensor_header(bytes.substr(kHeaderLengthBytes, length), data.size(), source)) {
    const auto* first = reinterpret_cast<const std::byte*>(data.data()) + entry.begin;
    tensors.emplace(std::move(entry.name), HostTensor{std::string(entry.dtype->file_name),
                                                      std::move(entry.shape),
                                                      {first, first + (entry.end - entry.begin)}});
  }
  return tensors;
}

std::string read_file(const std::filesystem::path& path) { return read_file(RegularFile(path)); }

std::string read_file(const RegularFile& file) {
  const uint64_t size = file.size();
  std::string bytes;
  within_memory(file, size, [&] { bytes.resize(size); });
  file.read(0, bytes.data(), size);
  return bytes;
}

void write_tensor_file(const std::filesystem::path& path, const TensorMap& tensors) {
  write_file(path, encode_tensors(tensors));
}

TensorMap read_tensors(const RegularFile& file, uint64_t most_bytes) {
  const std::string source = file.path().string();
  const uint64_t size = file.size();
  if (size > most_bytes)
    throw InputError(source + ": " + std::to_string(size) + " bytes; expected at most " + std::to_string(most_bytes));
  char start[kHeaderLengthBytes] = {};
  file.read(0, start, std::min(size, kHeaderLengthBytes));
  const uint64_t length = header_length(start, std::min(size, kHeaderLengthBytes), size, source);
  const uint64_t data = kHeaderLengthBytes + length;
  std::string header(length, '\0');
  file.read(kHeaderLengthBytes, header.data(), length);
  TensorMap tensors;
  within_memory(file, size, [&] {
    for (TensorEntry& entry : parse_tensor_header(header, size - data, source)) {
      HostTensor tensor{std::string(entry.dtype->file_name), std::move(entry.shape),
                        std::vector<std::byte>(entry.end - entry.begin)};
      file.read(data + entry.begin, tensor.data.data(), tensor.data.size());
      tensors.emplace(std::move(entry.name), std::move(tensor));
    }
  });
  return tensors;
}

TensorMap read_tensor_file(const std::filesystem::path& path) { return read_tensors(RegularFile(path)); }

}  // namespace plumbline
