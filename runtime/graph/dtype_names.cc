#include "runtime/graph/dtype_names.h"

#include <array>
#include <utility>

namespace plumbline {
namespace {

constexpr std::array<std::pair<at::ScalarType, const char*>, 13> kNames{{
    {at::kFloat, "f32"},
    {at::kDouble, "f64"},
    {at::kBFloat16, "bf16"},
    {at::kHalf, "f16"},
    {at::kLong, "i64"},
    {at::kInt, "i32"},
    {at::kShort, "i16"},
    {at::kChar, "i8"},
    {at::kByte, "u8"},
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
  return std::nullopt;
}

}  // namespace plumbline
