#include "runtime/graph/dtype_names.h"

#include <array>
#include <utility>

namespace plumbline::graph {
namespace {

constexpr std::array<std::pair<at::ScalarType, const char*>, 16> kNames{{
    {at::kFloat, "f32"},
    {at::kDouble, "f64"},
    {at::kBFloat16, "bf16"},
    {at::kHalf, "f16"},
    {at::kLong, "i64"},
    {at::kInt, "i32"},
    {at::kShort, "i16"},
    {at::kChar, "i8"},
    {at::kByte, "u8"},
    {at::ScalarType::UInt16, "u16"},
    {at::ScalarType::UInt32, "u32"},
    {at::ScalarType::UInt64, "u64"},
    {at::kBool, "bool"},
    {at::kComplexFloat, "c64"},
    {at::kComplexDouble, "c128"},
    {at::ScalarType::ComplexHalf, "c32"},
}};

}  // namespace

std::string dtype_name(at::ScalarType dtype) {
  for (const auto& [type, name] : kNames)
    if (type == dtype) return name;
  return c10::toString(dtype);
}

std::optional<at::ScalarType> dtype_from_name(const std::string& name) {
  for (const auto& [type, known] : kNames)
    if (name == known) return type;
  // The rest goes by LibTorch's own names.
  for (int i = 0; i < static_cast<int>(at::ScalarType::Undefined); ++i)
    if (name == c10::toString(static_cast<at::ScalarType>(i))) return static_cast<at::ScalarType>(i);
  return std::nullopt;
}

}  // namespace plumbline::graph
