// The arguments of a captured call, by name and as JSON.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/export/portable_stage.h"

namespace plumbline::conformance {

/// A value of the program as an argument; null for a negative number.
inline Json reference(int value) { return value < 0 ? Json(nullptr) : Json{{"value", value}}; }

/// The name of a call's functional operator, with its overload after a period: "aten::add.Tensor" for aten::add.Tensor
/// and for the in-place aten::add_.Tensor.
std::string functional_name(const graph::Node& node);

/// The position of the argument `name` in the schema. Throws Error if it has none.
size_t argument_index(const graph::Node& node, std::string_view name);
/// Constant arguments, which must be present.
int64_t integer(const graph::Node& node, std::string_view name);
std::vector<int64_t> integers(const graph::Node& node, std::string_view name);

/// "F32": exported files use the dtype names of safetensors throughout.
std::string dtype_json(at::ScalarType dtype);

/// Every argument in `wanted`, in that order. Another argument must have the schema's default, or concern only memory
/// and devices; otherwise its name is stored in `unsupported`.
Json call_arguments(const graph::Node& node, std::span<const std::string_view> wanted,
                    const std::function<int(graph::ValueId)>& number_of, std::string& unsupported);

}  // namespace plumbline::conformance
