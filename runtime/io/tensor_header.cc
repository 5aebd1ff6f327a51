#include "runtime/io/tensor_header.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/error.h"
#include "runtime/io/json_place.h"
#include "runtime/text/one_line.h"
#include "runtime/text/shortened.h"

namespace plumbline {
namespace {

using Json = nlohmann::json;

constexpr uint64_t max_header_bytes = 100'000'000;  // the limit of the format's own implementation
constexpr size_t kMostDimensions = 32;              // of NumPy 1, with which others read the file

std::string dtype_list() {
  std::string list;
  for (const types::DtypeInfo& info : types::dtypes())
    if (!info.file_name.empty()) list += (list.empty() ? "" : ", ") + std::string(info.file_name);
  return list;
}

/// The name of a tensor, for a message: a JSON string may have line ends, and any length.
std::string quoted(const std::string& name) { return "`" + one_line(shortened(name)) + "`"; }

Json parse_header(std::string_view text, const std::string& source) {
  if (!text.starts_with('{')) throw InputError(source + ": the header is not a JSON object");  // the format's rule
  Json header = parse_json(text, source + ": the header");
  if (!header.is_object()) throw InputError(source + ": the header is not a JSON object");
  return header;
}

TensorEntry parse_entry(const std::string& name, const Json& json, uint64_t data_bytes, const std::string& where) {
  if (!json.is_object() || !json.contains("dtype") || !json.contains("shape") || !json.contains("data_offsets") ||
      json.size() != 3)
    throw InputError(where + ": the header must give exactly dtype, shape and data_offsets");
  TensorEntry entry;
  entry.name = name;
  if (json["dtype"].is_string()) entry.dtype = find_dtype(json["dtype"].get<std::string>());
  if (entry.dtype == nullptr)
    throw InputError(where + ": unknown dtype " + excerpt(json["dtype"]) + "; expected one of " + dtype_list());
  const auto is_size = [](const Json& value) { return value.is_number_unsigned(); };
  const Json& shape = json["shape"];
  if (!shape.is_array() || !std::all_of(shape.begin(), shape.end(), is_size))
    throw InputError(where + ": shape " + excerpt(shape) + " is not a list of sizes");
  for (const Json& size : shape) {
    if (size.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      throw InputError(where + ": shape " + excerpt(shape) + " is not a list of sizes");
    entry.shape.push_back(size.get<int64_t>());
  }
  const Json& offsets = json["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !is_size(offsets[0]) || !is_size(offsets[1]))
    throw InputError(where + ": data_offsets " + excerpt(offsets) + " is not [begin, end]");
  entry.begin = offsets[0].get<uint64_t>();
  entry.end = offsets[1].get<uint64_t>();
  if (entry.begin > entry.end || entry.end > data_bytes)
    throw InputError(where + ": data_offsets " + excerpt(offsets) + " lie outside the " + std::to_string(data_bytes) +
                     " bytes of data (is the file truncated?)");
  const uint64_t wanted = byte_count(*entry.dtype, entry.shape, where);
  if (entry.end - entry.begin != wanted)
    throw InputError(where + ": size mismatch: " + std::string(entry.dtype->file_name) + excerpt(shape) + " takes " +
                     std::to_string(wanted) + " bytes, its data_offsets span " +
                     std::to_string(entry.end - entry.begin));
  return entry;
}

/// The format allows neither gaps nor overlaps: sorted by offset, the entries must tile the data.
void check_tiling(std::vector<TensorEntry> entries, uint64_t data_bytes, const std::string& source) {
  std::sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t covered = 0;
  for (const TensorEntry& entry : entries) {
    if (entry.begin < covered) throw InputError(source + ": tensor " + quoted(entry.name) + " overlaps another one");
    if (entry.begin > covered)
      throw InputError(source + ": " + std::to_string(entry.begin - covered) +
                       " bytes that belong to no tensor before " + quoted(entry.name));
    covered = entry.end;
  }
  if (covered != data_bytes)
    throw InputError(source + ": " + std::to_string(data_bytes - covered) + " bytes after the last tensor");
}

}  // namespace

const types::DtypeInfo* find_dtype(std::string_view name) {
  for (const types::DtypeInfo& info : types::dtypes())
    if (info.file_name == name && !name.empty()) return &info;
  return nullptr;
}

const types::DtypeInfo& known_dtype(std::string_view name, const std::string& where) {
  const types::DtypeInfo* dtype = find_dtype(name);
  if (dtype == nullptr)
    throw InputError(where + ": unknown dtype " + std::string(name) + "; expected one of " + dtype_list());
  return *dtype;
}

uint64_t byte_count(const types::DtypeInfo& dtype, const std::vector<int64_t>& shape, const std::string& where) {
  if (shape.size() > kMostDimensions)
    throw InputError(where + ": " + std::to_string(shape.size()) + " dimensions in its shape; expected at most " +
                     std::to_string(kMostDimensions));
  // Sizes of 0 are left out of the limit, whatever their place: strides are products of the others.
  int64_t bytes = dtype.bytes;
  bool empty = false;
  for (const int64_t size : shape) {
    if (size < 0) throw InputError(where + ": negative size in its shape");
    empty = empty || size == 0;
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes))
      throw InputError(where + ": its shape requires more than 2^63 bytes");
  }
  return empty ? 0 : static_cast<uint64_t>(bytes);
}

uint64_t header_length(const char* bytes, uint64_t count, uint64_t file_bytes, const std::string& source) {
  uint64_t length = 0;
  if (count < kHeaderLengthBytes)
    throw InputError(source + ": truncated: " + std::to_string(count) +
                     " bytes, a safetensors file opens with 8 bytes of header length");
  std::memcpy(&length, bytes, kHeaderLengthBytes);
  if (length > max_header_bytes)
    throw InputError(source + ": header length " + std::to_string(length) + " is over the format's limit of " +
                     std::to_string(max_header_bytes) + " (not a safetensors file?)");
  if (const uint64_t left = file_bytes - kHeaderLengthBytes; length > left)
    throw InputError(source + ": truncated: header of " + std::to_string(length) + " bytes, " + std::to_string(left) +
                     " left in the file");
  return length;
}

std::vector<TensorEntry> parse_tensor_header(std::string_view text, uint64_t data_bytes, const std::string& source) {
  const Json header = parse_header(text, source);
  std::vector<TensorEntry> entries;
  if (const auto metadata = header.find(kMetadataKey); metadata != header.end())
    if (!metadata->is_object() || !std::ranges::all_of(*metadata, [](const Json& value) { return value.is_string(); }))
      throw InputError(source + ": __metadata__ is not an object of strings");
  for (const auto& [name, json] : header.items())
    if (name != kMetadataKey)
      entries.push_back(parse_entry(name, json, data_bytes, source + ": tensor " + quoted(name)));
  check_tiling(entries, data_bytes, source);
  return entries;
}

}  // namespace plumbline
