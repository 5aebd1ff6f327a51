// Short names of element types for the text form and errors: f32, bf16, i64, bool. A type without a short name has
// LibTorch's name.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>

namespace plumbline::graph {

std::string dtype_name(at::ScalarType dtype);
/// The inverse of dtype_name(); empty for an unknown name.
std::optional<at::ScalarType> dtype_from_name(const std::string& name);

}  // namespace plumbline::graph
