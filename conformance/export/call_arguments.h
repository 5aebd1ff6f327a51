// The arguments of a captured call, by name and as JSON.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/export/portable_stage.h"

namespace plumbline::conformance {

/// A value of the program, as an argument says it.
inline Json reference(int value) { return value < 0 ? Json(nullptr) : Json{{"value", value}}; }

/// The operator that a call stands for, its overload behind a point: of an in-place call the functional one
/// ("aten::add.Tensor" for aten::add_.Tensor).
std::string functional_name(const graph::Node& node);

/// Where the schema has the argument of that name. Throws Error when it has none.
size_t argument_index(const graph::Node& node, std::string_view name);
/// Constants that must be there.
int64_t integer(const graph::Node& node, std::string_view name);
std::vector<int64_t> integers(const graph::Node& node, std::string_view name);

/// "f32" as "F32": element types go by the names of safetensors throughout.
std::string dtype_json(at::ScalarType dtype);

/// Every argument in `wanted`, in that order. An argument that is not wanted must say nothing (be the schema's default)
/// or be about memory and devices only: else `unsaid` is its name.
Json call_arguments(const graph::Node& node, std::span<const std::string_view> wanted,
                    const std::function<int(graph::ValueId)>& number_of, std::string& unsaid);

}  // namespace plumbline::conformance
