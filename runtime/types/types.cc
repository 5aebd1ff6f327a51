#include "runtime/types/types.h"

#include <array>
#include <utility>

#include "runtime/text/number.h"

namespace plumbline::types {
namespace {

template <class Value>
using Name = std::pair<Value, std::string_view>;

constexpr auto kDtypes = std::to_array<DtypeInfo>({
    {Dtype::Float32, "float32", "f32", "F32", 4, true, 24, -126},
    {Dtype::Float64, "float64", "f64", "F64", 8, true, 53, -1022},
    {Dtype::BFloat16, "bfloat16", "bf16", "BF16", 2, true, 8, -126},
    {Dtype::Float16, "float16", "f16", "F16", 2, true, 11, -14},
    {Dtype::Int64, "int64", "i64", "I64", 8, false},
    {Dtype::Int32, "int32", "i32", "I32", 4, false},
    {Dtype::Int16, "int16", "i16", "I16", 2, false},
    {Dtype::Int8, "int8", "i8", "I8", 1, false},
    {Dtype::UInt8, "uint8", "u8", "U8", 1, false},
    {Dtype::UInt16, "uint16", "u16", "U16", 2, false},
    {Dtype::UInt32, "uint32", "u32", "U32", 4, false},
    {Dtype::UInt64, "uint64", "u64", "U64", 8, false},
    {Dtype::Bool, "bool", "bool", "BOOL", 1, false},
    {Dtype::Complex32, "complex32", "c32", "", 4, false},
    {Dtype::Complex64, "complex64", "c64", "", 8, false},
    {Dtype::Complex128, "complex128", "c128", "", 16, false},
    {Dtype::Float8E5M2, "float8_e5m2", "", "", 1, true},
    {Dtype::Float8E4M3FN, "float8_e4m3fn", "", "", 1, true},
    {Dtype::Float8E5M2FNUZ, "float8_e5m2fnuz", "", "", 1, true},
    {Dtype::Float8E4M3FNUZ, "float8_e4m3fnuz", "", "", 1, true},
    {Dtype::Float8E8M0FNU, "float8_e8m0fnu", "", "", 1, true},
});

constexpr auto kLayouts = std::to_array<Name<Layout>>({{Layout::Strided, "strided"},
                                                       {Layout::SparseCoo, "sparse_coo"},
                                                       {Layout::SparseCsr, "sparse_csr"},
                                                       {Layout::SparseCsc, "sparse_csc"},
                                                       {Layout::SparseBsr, "sparse_bsr"},
                                                       {Layout::SparseBsc, "sparse_bsc"},
                                                       {Layout::Jagged, "jagged"},
                                                       {Layout::Mkldnn, "_mkldnn"}});

constexpr auto kMemoryFormats = std::to_array<Name<MemoryFormat>>({{MemoryFormat::Contiguous, "contiguous_format"},
                                                                   {MemoryFormat::Preserve, "preserve_format"},
                                                                   {MemoryFormat::ChannelsLast, "channels_last"},
                                                                   {MemoryFormat::ChannelsLast3d, "channels_last_3d"}});

// In the order of Device::Kind.
constexpr std::array<std::string_view, 21> kDevices = {
    "cpu",   "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip",  "fpga", "maia", "xla",          "vulkan",
    "metal", "xpu",  "mps",    "meta",   "hpu",    "ve",    "lazy", "ipu",  "mtia", "privateuseone"};

template <class Table, class Value>
std::string_view find_name(const Table& table, Value value) {
  for (const auto& [known, name] : table)
    if (known == value) return name;
  return "unknown";
}

template <class Value, size_t N>
std::optional<Value> find_value(const std::array<Name<Value>, N>& table, std::string_view name) {
  for (const auto& [value, known] : table)
    if (known == name) return value;
  return std::nullopt;
}

template <class Table>
std::vector<std::string_view> all_names(const Table& table) {
  std::vector<std::string_view> names;
  for (const auto& [value, name] : table) names.push_back(name);
  return names;
}

}  // namespace

std::span<const DtypeInfo> dtypes() { return kDtypes; }

std::string_view name_of(Dtype dtype) {
  for (const DtypeInfo& info : kDtypes)
    if (info.dtype == dtype) return info.name;
  return "unknown";
}
std::string_view name_of(Layout layout) { return find_name(kLayouts, layout); }
std::string_view name_of(MemoryFormat format) { return find_name(kMemoryFormats, format); }

std::string name_of(Device device) {
  std::string name(kDevices.at(static_cast<size_t>(device.kind)));
  return device.index < 0 ? name : name + ":" + std::to_string(device.index);
}

std::optional<Dtype> dtype_named(std::string_view name) {
  for (const DtypeInfo& info : kDtypes)
    if (info.name == name) return info.dtype;
  return std::nullopt;
}
std::optional<Layout> layout_named(std::string_view name) { return find_value(kLayouts, name); }
std::optional<MemoryFormat> memory_format_named(std::string_view name) { return find_value(kMemoryFormats, name); }

std::optional<Device> device_named(std::string_view name) {
  const size_t colon = name.find(':');
  Device device;
  if (colon != std::string_view::npos) {
    device.index = parse_number<int8_t>(name.substr(colon + 1)).value_or(-1);
    if (device.index < 0) return std::nullopt;
  }
  for (size_t kind = 0; kind < kDevices.size(); ++kind) {
    if (kDevices[kind] != name.substr(0, colon)) continue;
    device.kind = static_cast<Device::Kind>(kind);
    return device;
  }
  return std::nullopt;
}

std::vector<std::string_view> dtype_names() {
  std::vector<std::string_view> names;
  for (const DtypeInfo& info : kDtypes) names.push_back(info.name);
  return names;
}
std::vector<std::string_view> layout_names() { return all_names(kLayouts); }
std::vector<std::string_view> memory_format_names() { return all_names(kMemoryFormats); }

}  // namespace plumbline::types
