#include "runtime/io/tensor_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/error.h"
#include "runtime/io/json_place.h"

namespace plumbline {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor files are read and written without byte swaps");

using Json = nlohmann::json;

constexpr uint64_t max_header_bytes = 100'000'000;  // the limit of the format's own implementation
constexpr const char* metadata_key = "__metadata__";

struct DtypeInfo {
  std::string_view name;
  size_t bytes;
  bool floating;
};

constexpr std::array<DtypeInfo, 13> dtypes = {{{"F64", 8, true},
                                               {"F32", 4, true},
                                               {"F16", 2, true},
                                               {"BF16", 2, true},
                                               {"I64", 8, false},
                                               {"I32", 4, false},
                                               {"I16", 2, false},
                                               {"I8", 1, false},
                                               {"U64", 8, false},
                                               {"U32", 4, false},
                                               {"U16", 2, false},
                                               {"U8", 1, false},
                                               {"BOOL", 1, false}}};

const DtypeInfo* find_dtype(std::string_view name) {
  const auto found = std::find_if(dtypes.begin(), dtypes.end(), [&](const DtypeInfo& d) { return d.name == name; });
  return found == dtypes.end() ? nullptr : &*found;
}

std::string dtype_list() {
  std::string list;
  for (const DtypeInfo& dtype : dtypes) list += (list.empty() ? "" : ", ") + std::string(dtype.name);
  return list;
}

template <typename T>
T load(const HostTensor& tensor, int64_t index) {
  T value;
  std::memcpy(&value, tensor.data.data() + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

double half_to_double(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  double magnitude;
  if (exponent == 0x1f) {
    magnitude = mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(mantissa, -24);
  } else {
    magnitude = std::ldexp(mantissa + 1024, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

/// The number of bytes that dtype and shape require. Throws InputError, prefixed with `where`, when it overflows.
uint64_t byte_count(const DtypeInfo& dtype, const std::vector<int64_t>& shape, const std::string& where) {
  uint64_t bytes = dtype.bytes;
  for (const int64_t size : shape) {
    if (size < 0) throw InputError(where + ": negative size in its shape");
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes) ||
        bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      throw InputError(where + ": its shape requires more than 2^63 bytes");
  }
  return bytes;
}

Json parse_header(std::string_view text, const std::string& source) {
  Json header = parse_json(text, source + ": the header");
  if (!header.is_object()) throw InputError(source + ": the header is not a JSON object");
  return header;
}

struct Entry {
  std::string name;
  const DtypeInfo* dtype = nullptr;
  std::vector<int64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

Entry parse_entry(const std::string& name, const Json& json, uint64_t data_bytes, const std::string& where) {
  if (!json.is_object() || !json.contains("dtype") || !json.contains("shape") || !json.contains("data_offsets") ||
      json.size() != 3)
    throw InputError(where + ": the header must give exactly dtype, shape and data_offsets");
  Entry entry;
  entry.name = name;
  if (json["dtype"].is_string()) entry.dtype = find_dtype(json["dtype"].get<std::string>());
  if (entry.dtype == nullptr)
    throw InputError(where + ": unknown dtype " + json["dtype"].dump() + "; expected one of " + dtype_list());
  const auto is_size = [](const Json& value) { return value.is_number_unsigned(); };
  const Json& shape = json["shape"];
  if (!shape.is_array() || !std::all_of(shape.begin(), shape.end(), is_size))
    throw InputError(where + ": shape " + shape.dump() + " is not a list of sizes");
  for (const Json& size : shape) {
    if (size.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      throw InputError(where + ": shape " + shape.dump() + " is not a list of sizes");
    entry.shape.push_back(size.get<int64_t>());
  }
  const Json& offsets = json["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !is_size(offsets[0]) || !is_size(offsets[1]))
    throw InputError(where + ": data_offsets " + offsets.dump() + " is not [begin, end]");
  entry.begin = offsets[0].get<uint64_t>();
  entry.end = offsets[1].get<uint64_t>();
  if (entry.begin > entry.end || entry.end > data_bytes)
    throw InputError(where + ": data_offsets " + offsets.dump() + " lie outside the " + std::to_string(data_bytes) +
                     " bytes of data (is the file truncated?)");
  const uint64_t wanted = byte_count(*entry.dtype, entry.shape, where);
  if (entry.end - entry.begin != wanted)
    throw InputError(where + ": size mismatch: " + std::string(entry.dtype->name) + shape.dump() + " takes " +
                     std::to_string(wanted) + " bytes, its data_offsets span " +
                     std::to_string(entry.end - entry.begin));
  return entry;
}

/// The format allows neither gaps nor overlaps: sorted by offset, the entries must tile the data.
void check_tiling(std::vector<Entry> entries, uint64_t data_bytes, const std::string& source) {
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  uint64_t covered = 0;
  for (const Entry& entry : entries) {
    if (entry.begin < covered) throw InputError(source + ": tensor `" + entry.name + "` overlaps another one");
    if (entry.begin > covered)
      throw InputError(source + ": " + std::to_string(entry.begin - covered) +
                       " bytes that belong to no tensor before `" + entry.name + "`");
    covered = entry.end;
  }
  if (covered != data_bytes)
    throw InputError(source + ": " + std::to_string(data_bytes - covered) + " bytes after the last tensor");
}

std::string system_reason() { return std::strerror(errno); }

}  // namespace

size_t element_size(std::string_view dtype) {
  const DtypeInfo* info = find_dtype(dtype);
  return info == nullptr ? 0 : info->bytes;
}

bool is_floating(std::string_view dtype) {
  const DtypeInfo* info = find_dtype(dtype);
  return info != nullptr && info->floating;
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
  if (tensor.dtype == "F16") return half_to_double(load<uint16_t>(tensor, index));
  if (tensor.dtype == "BF16") return std::bit_cast<float>(static_cast<uint32_t>(load<uint16_t>(tensor, index)) << 16);
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
  Json header = Json::object();
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const std::string where = "tensor `" + name + "`";
    if (name == metadata_key) throw InputError(where + ": the name is reserved by the file format");
    const DtypeInfo* dtype = find_dtype(tensor.dtype);
    if (dtype == nullptr)
      throw InputError(where + ": unknown dtype " + tensor.dtype + "; expected one of " + dtype_list());
    const uint64_t wanted = byte_count(*dtype, tensor.shape, where);
    if (wanted != tensor.data.size())
      throw InputError(where + ": " + describe(tensor) + " takes " + std::to_string(wanted) + " bytes, it has " +
                       std::to_string(tensor.data.size()));
    header[name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + wanted}}};
    offset += wanted;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception& error) {
    throw InputError(std::string("a tensor name is not UTF-8: ") + error.what());
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
  uint64_t length = 0;
  if (bytes.size() < sizeof(length))
    throw InputError(source + ": truncated: " + std::to_string(bytes.size()) +
                     " bytes, a safetensors file opens with 8 bytes of header length");
  std::memcpy(&length, bytes.data(), sizeof(length));
  bytes.remove_prefix(sizeof(length));
  if (length > max_header_bytes)
    throw InputError(source + ": header length " + std::to_string(length) + " is over the format's limit of " +
                     std::to_string(max_header_bytes) + " (not a safetensors file?)");
  if (length > bytes.size())
    throw InputError(source + ": truncated: header of " + std::to_string(length) + " bytes, " +
                     std::to_string(bytes.size()) + " left in the file");
  const Json header = parse_header(bytes.substr(0, length), source);
  const std::string_view data = bytes.substr(length);
  std::vector<Entry> entries;
  for (const auto& [name, json] : header.items())
    if (name != metadata_key)
      entries.push_back(parse_entry(name, json, data.size(), source + ": tensor `" + name + "`"));
  check_tiling(entries, data.size(), source);
  TensorMap tensors;
  for (Entry& entry : entries) {
    const auto* first = reinterpret_cast<const std::byte*>(data.data()) + entry.begin;
    tensors.emplace(
        std::move(entry.name),
        HostTensor{std::string(entry.dtype->name), std::move(entry.shape), {first, first + (entry.end - entry.begin)}});
  }
  return tensors;
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  static std::atomic<unsigned> counter{0};  // several threads (ranks) of one process may write to the same folder
  std::filesystem::path temporary = path;
  temporary += ".tmp." + std::to_string(getpid()) + "." + std::to_string(counter++);
  {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    if (!file) throw InputError("cannot write " + path.string() + ": " + system_reason());
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) {
      const std::string reason = system_reason();
      std::error_code ignored;
      std::filesystem::remove(temporary, ignored);
      throw Error("writing " + path.string() + " failed: " + reason);
    }
  }
  std::error_code error;
  std::filesystem::rename(temporary, path, error);
  if (error) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw InputError("cannot write " + path.string() + ": " + error.message());
  }
}

std::string read_file(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw InputError("cannot read " + path.string() + ": it is a folder");
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw InputError("cannot read " + path.string() + ": " + system_reason());
  std::string bytes(static_cast<size_t>(file.tellg()), '\0');
  file.seekg(0);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file) throw InputError("cannot read " + path.string() + ": " + system_reason());
  return bytes;
}

void write_tensor_file(const std::filesystem::path& path, const TensorMap& tensors) {
  write_file(path, encode_tensors(tensors));
}

TensorMap read_tensor_file(const std::filesystem::path& path) { return decode_tensors(read_file(path), path.string()); }

}  // namespace plumbline
