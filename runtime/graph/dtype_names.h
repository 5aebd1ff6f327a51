// Short names of element types, as the text form and errors print them: f32, bf16, i64, bool.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>

namespace plumbline::graph {

std::string dtype_name(at::ScalarType dtype);
std::optional<at::ScalarType> dtype_from_name(const std::string& name);

}  // namespace plumbline::graph
