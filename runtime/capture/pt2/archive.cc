#include "runtime/capture/pt2/archive.h"

#include <ATen/ops/empty.h>
#include <caffe2/serialize/inline_container.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>

// Slicing-by-16, as LibTorch's writer uses it.
#define CRC32_USE_LOOKUP_TABLE_SLICING_BY_16
#include <caffe2/serialize/crc_alt.h>

#include "runtime/error.h"
#include "runtime/graph/dtype_names.h"
#include "runtime/graph/error_text.h"
#include "runtime/io/json_place.h"
#include "runtime/text/in_quotes.h"

namespace plumbline::capture::pt2 {
namespace {

using nlohmann::json;

/// The most that the entries unpack to together, for each byte of the file. PyTorch stores entries as they are; a
/// program that packs them again does not pack weights and JSON more tightly than this, while a zip bomb has about
/// 1000.
constexpr size_t kUnpackedBytes = 100;

constexpr const char* kImpossible = " has sizes, strides or an offset that no tensor can have";

/// Drops LibTorch's guesses about checkpoints, which follow.
std::string first_clause(const std::string& text) { return text.substr(0, text.find_first_of(".\n")); }

std::vector<int64_t> plain_numbers(const json& list) {
  std::vector<int64_t> numbers;
  for (const json& number : list) numbers.push_back(whole(number.at("as_int")));
  return numbers;
}

/// Bytes from the beginning of the storage to the end of the last element; empty for more than 2^63.
std::optional<int64_t> extent(at::IntArrayRef sizes, at::IntArrayRef strides, int64_t offset, int64_t element) {
  int64_t last = offset;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    int64_t step = 0;
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &step) || __builtin_add_overflow(last, step, &last)) return {};
  }
  int64_t bytes = 0;
  if (__builtin_add_overflow(last, 1, &last) || __builtin_mul_overflow(last, element, &bytes)) return {};
  return bytes;
}

}  // namespace

Archive::Archive(const std::filesystem::path& path) : file_(path.string()) {
  if (!std::filesystem::is_regular_file(path))
    throw InputError(file_ + (std::filesystem::exists(path) ? ": not a file" : ": no such file") +
                     "; expected a .pt2 archive");
  file_bytes_ = std::filesystem::file_size(path);
  try {
    reader_ = std::make_unique<caffe2::serialize::PyTorchStreamReader>(file_);
  } catch (const std::exception& error) {
    refuse("not a .pt2 archive, or cut off: " + first_clause(graph::error_text(error)));
  }
}

Archive::~Archive() = default;

void Archive::refuse(const std::string& what) const { throw InputError(file_ + ": " + what); }

bool Archive::has(const std::string& entry) { return reader_->hasRecord(entry); }

std::pair<at::DataPtr, size_t> Archive::read(const std::string& entry, const std::string& purpose) {
  if (!has(entry)) refuse("no entry " + in_quotes(entry) + ", which would hold " + purpose);
  try {
    const size_t size = reader_->getRecordSize(entry), most = kUnpackedBytes * file_bytes_;
    if (size > most || unpacked_bytes_ > most - size)
      refuse("entry " + in_quotes(entry) + " unpacks to " + std::to_string(size) + " bytes, those before it to " +
             std::to_string(unpacked_bytes_) + ", the file has " + std::to_string(file_bytes_) + "; expected at most " +
             std::to_string(kUnpackedBytes) + " times as many");
    unpacked_bytes_ += size;
    auto [bytes, count] = reader_->getRecord(entry);
    check_sum(entry, bytes.get(), count);
    return {std::move(bytes), count};
  } catch (const c10::Error& error) {
    refuse("entry " + in_quotes(entry) + " cannot be read: " + graph::error_line(error));
  }
}

/// The reader does not expose checksums; they are in the entry's own header, or after its data if the writer streamed
/// (bit 3 of the flags). Only stored entries are checked: a damaged deflated one fails to inflate.
void Archive::check_sum(const std::string& entry, const void* bytes, size_t count) {
  const auto number = [](const unsigned char* at, int width) {
    uint32_t value = 0;
    for (int i = width; i-- > 0;) value = value << 8 | at[i];
    return value;
  };
  std::ifstream file(file_, std::ios::binary);
  std::array<unsigned char, 18> header{};
  file.seekg(static_cast<std::streamoff>(reader_->getRecordHeaderOffset(entry)));
  file.read(reinterpret_cast<char*>(header.data()), header.size());
  constexpr int kFlags = 6, kMethod = 8, kSum = 14;
  if (number(&header[kMethod], 2) != 0) return;
  uint32_t expected = number(&header[kSum], 4);
  if (number(&header[kFlags], 2) & 8) {
    std::array<unsigned char, 8> behind{};
    file.seekg(static_cast<std::streamoff>(reader_->getRecordOffset(entry) + count));
    file.read(reinterpret_cast<char*>(behind.data()), behind.size());
    const bool signature = number(behind.data(), 4) == 0x08074b50;
    expected = number(&behind[signature ? 4 : 0], 4);
  }
  if (!file || crc32_fast(bytes, count) != expected)
    refuse("entry " + in_quotes(entry) + " is damaged: its checksum does not match its bytes");
}

std::string Archive::read_text(const std::string& entry) {
  const auto [bytes, count] = read(entry, "a text");
  return {static_cast<const char*>(bytes.get()), count};
}

json Archive::read_json(const std::string& entry, const std::string& purpose) {
  const auto [bytes, count] = read(entry, purpose);
  return parse_json({static_cast<const char*>(bytes.get()), count}, file_ + ": entry " + in_quotes(entry));
}

TensorFolder::TensorFolder(Archive& archive, std::string folder, const std::string& list)
    : archive_(archive), folder_(std::move(folder)), list_entry_(folder_ + "/" + list), list_(json::object()) {
  if (!archive_.has(list_entry_)) return;  // a program without constants
  const json read = archive_.read_json(list_entry_, "the list of tensors");
  if (!read.contains("config") || !read["config"].is_object())
    archive_.refuse("entry " + in_quotes(list_entry_) + " has no object 'config'");
  list_ = read["config"];
}

const c10::Storage& TensorFolder::storage(const std::string& path, const std::string& name) {
  const auto it = storages_.find(path);
  if (it != storages_.end()) return it->second;
  auto [bytes, count] = archive_.read(folder_ + "/" + path, "the tensor " + in_quotes(name));
  c10::Storage storage(c10::Storage::use_byte_size_t(), count, std::move(bytes), /*allocator=*/nullptr,
                       /*resizable=*/false);
  return storages_.emplace(path, std::move(storage)).first->second;
}

at::Tensor TensorFolder::load(const std::string& name) {
  const std::string what = "entry " + in_quotes(list_entry_) + ": tensor " + in_quotes(name);
  if (!has(name)) archive_.refuse("entry " + in_quotes(list_entry_) + " does not list the tensor " + in_quotes(name));
  try {
    const json& item = list_.at(name);
    if (item.at("use_pickle").get<bool>() || item.at("tensor_meta").is_null())
      archive_.refuse(what + " is a tensor subclass, saved as a pickle; only plain tensors can be read");
    const auto [known, inserted] = tensors_.try_emplace(item.dump());
    if (!inserted) return known->second;
    const json& meta = item.at("tensor_meta");
    const at::ScalarType dtype = scalar_type(whole(meta.at("dtype")));
    if (layout(whole(meta.at("layout"))) != c10::kStrided)
      archive_.refuse(what + " is not strided; only strided tensors can be read");
    const std::vector<int64_t> sizes = plain_numbers(meta.at("sizes")), strides = plain_numbers(meta.at("strides"));
    const auto offset = whole(meta.at("storage_offset").at("as_int"));
    const auto negative = [](int64_t x) { return x < 0; };
    if (sizes.size() != strides.size() || std::any_of(sizes.begin(), sizes.end(), negative) ||
        std::any_of(strides.begin(), strides.end(), negative) || offset < 0)
      archive_.refuse(what + kImpossible);
    const auto path = item.at("path_name").get<std::string>();
    const c10::Storage& memory = storage(path, name);
    const auto needed = extent(sizes, strides, offset, static_cast<int64_t>(c10::elementSize(dtype)));
    if (!needed || static_cast<size_t>(*needed) > memory.nbytes())
      archive_.refuse(what + " needs " + (needed ? std::to_string(*needed) : "more than 2^63") + " bytes, but " +
                      in_quotes(folder_ + "/" + path) + " has " + std::to_string(memory.nbytes()));
    // Elements of stride 0 share their memory.
    if (!are_sizes_of_a_tensor(sizes)) archive_.refuse(what + kImpossible);
    const bool requires_grad = meta.at("requires_grad").get<bool>();
    if (requires_grad && !at::isFloatingType(dtype) && !at::isComplexType(dtype))
      archive_.refuse(what + " requires a gradient, which elements of type " + graph::dtype_name(dtype) +
                      " cannot have");
    at::Tensor tensor = at::empty({0}, at::TensorOptions(dtype));
    tensor.set_(memory, offset, sizes, strides);
    if (requires_grad) tensor.set_requires_grad(true);
    return known->second = tensor;
  } catch (const json::exception& error) {
    archive_.refuse(what + ": " + json_reason(error));
  } catch (const InputError&) {
    throw;
  } catch (const std::exception& error) {
    archive_.refuse(what + ": " + graph::error_line(error));
  }
}

int64_t whole(const json& value) {
  const bool too_large = value.is_number_unsigned() && value.get<uint64_t>() > std::numeric_limits<int64_t>::max();
  if (!value.is_number_integer() || too_large)
    throw json::type_error::create(302, "expected a whole number, not " + value.dump().substr(0, 40), &value);
  return value.get<int64_t>();
}

bool are_sizes_of_a_tensor(at::IntArrayRef sizes) {
  int64_t bytes = 16;  // of the largest element
  return std::ranges::none_of(sizes, [&](int64_t size) {
    return size < 0 || __builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes);
  });
}

at::ScalarType scalar_type(int64_t number) {
  constexpr std::array<std::pair<int64_t, at::ScalarType>, 19> kTypes{{
      {1, at::kByte},
      {2, at::kChar},
      {3, at::kShort},
      {4, at::kInt},
      {5, at::kLong},
      {6, at::kHalf},
      {7, at::kFloat},
      {8, at::kDouble},
      {9, at::ScalarType::ComplexHalf},
      {10, at::kComplexFloat},
      {11, at::kComplexDouble},
      {12, at::kBool},
      {13, at::kBFloat16},
      {28, at::ScalarType::UInt16},
      {29, at::ScalarType::Float8_e4m3fn},
      {30, at::ScalarType::Float8_e5m2},
      {31, at::ScalarType::Float8_e4m3fnuz},
      {32, at::ScalarType::Float8_e5m2fnuz},
      {33, at::ScalarType::Float8_e8m0fnu},
  }};
  for (const auto& [known, type] : kTypes)
    if (known == number) return type;
  throw Error("element type " + std::to_string(number) + " of the schema is not known");
}

c10::Layout layout(int64_t number) {
  constexpr std::array kLayouts{c10::kSparse,    c10::kSparseCsr, c10::kSparseCsc, c10::kSparseBsr,
                                c10::kSparseBsc, c10::kMkldnn,    c10::kStrided};
  if (number < 1 || number > static_cast<int64_t>(kLayouts.size()))
    throw Error("layout " + std::to_string(number) + " of the schema is not known");
  return kLayouts[number - 1];
}

c10::MemoryFormat memory_format(int64_t number) {
  constexpr std::array kFormats{c10::MemoryFormat::Contiguous, c10::MemoryFormat::ChannelsLast,
                                c10::MemoryFormat::ChannelsLast3d, c10::MemoryFormat::Preserve};
  if (number < 1 || number > static_cast<int64_t>(kFormats.size()))
    throw Error("memory format " + std::to_string(number) + " of the schema is not known");
  return kFormats[number - 1];
}

}  // namespace plumbline::capture::pt2
