// Element types, layouts, memory formats and devices without LibTorch, with PyTorch's names. aten.h converts them to
// LibTorch's types and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::types {

// The enumerators have the numbers that they have in c10.

enum class Dtype : int8_t {
  UInt8,
  Int8,
  Int16,
  Int32,
  Int64,
  Float16,
  Float32,
  Float64,
  Complex32,
  Complex64,
  Complex128,
  Bool,
  BFloat16 = 15,
  Float8E5M2 = 23,
  Float8E4M3FN,
  Float8E5M2FNUZ,
  Float8E4M3FNUZ,
  UInt16,
  UInt32,
  UInt64,
  Float8E8M0FNU = 44
};

/// An element type and its names.
struct DtypeInfo {
  Dtype dtype;
  std::string_view name;        ///< PyTorch's: "float32"
  std::string_view short_name;  ///< in the text form of graphs: "f32"; empty for a type without one
  std::string_view file_name;   ///< in safetensors files: "F32"; empty if our files do not hold the type
  size_t bytes;                 ///< of one element
  bool floating;                ///< real numbers; false for complex ones
  int digits = 0;               ///< of the significand, with the hidden bit; 0 unless floating with a file name
  int smallest = 0;             ///< exponent of the smallest normal number; likewise
};

/// Returns the supported element types, each once, in the order of the names in errors: not indexed by Dtype. Valid
/// until the program ends.
std::span<const DtypeInfo> dtypes();

enum class Layout : int8_t { Strided, SparseCoo, SparseCsr, Mkldnn, SparseCsc, SparseBsr, SparseBsc, Jagged };

enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

struct Device {
  enum class Kind : int8_t {
    Cpu,
    Cuda,
    Mkldnn,
    OpenGl,
    OpenCl,
    Ideep,
    Hip,
    Fpga,
    Maia,
    Xla,
    Vulkan,
    Metal,
    Xpu,
    Mps,
    Meta,
    Hpu,
    Ve,
    Lazy,
    Ipu,
    Mtia,
    PrivateUse1
  };
  Kind kind = Kind::Cpu;
  int8_t index = -1;  ///< -1: no index, the current device of its kind
  bool operator==(const Device&) const = default;
};

/// Return PyTorch's name without "torch.": "float32", "strided", "channels_last", "cuda:0" ("cuda" without an index).
std::string_view name_of(Dtype dtype);
std::string_view name_of(Layout layout);
std::string_view name_of(MemoryFormat format);
std::string name_of(Device device);

/// Return the value with this name; nullopt for any other name. A device is a kind, or a kind and an index: "cuda",
/// "cuda:0".
std::optional<Dtype> dtype_named(std::string_view name);
std::optional<Layout> layout_named(std::string_view name);
std::optional<MemoryFormat> memory_format_named(std::string_view name);
std::optional<Device> device_named(std::string_view name);

/// Return the names of all supported values, for errors; valid until the program ends.
std::vector<std::string_view> dtype_names();
std::vector<std::string_view> layout_names();
std::vector<std::string_view> memory_format_names();

}  // namespace plumbline::types
