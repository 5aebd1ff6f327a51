// The arguments of a captured call, by name and as JSON.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/export/portable_stage.h"

namespace plumbline::conformance {

/// The JSON form of an argument that is the program value with this number: {"value": 7}, or null for a negative
/// number.
inline Json reference(int value) { return value < 0 ? Json(nullptr) : Json{{"value", value}}; }

/// The name of the functional form of the node's operator, with the overload after a period: "aten::add.Tensor" both
/// for aten::add.Tensor and for the in-place aten::add_.Tensor.
std::string functional_name(const graph::Node& node);

/// The position of the argument `name` in the operator's schema. Throws Error if the schema lacks that argument.
size_t argument_index(const graph::Node& node, std::string_view name);
/// The value of the argument `name`, which must be a constant integer, or a constant list of integers.
int64_t integer(const graph::Node& node, std::string_view name);
std::vector<int64_t> integers(const graph::Node& node, std::string_view name);

/// The name of a dtype as in safetensors ("F32"), which all exported files use.
std::string dtype_json(at::ScalarType dtype);

/// Returns the arguments in `wanted` by name, in that order. `number_of` maps a value of the graph to its number in the
/// program. Every other argument must be None, have the schema's default, or affect only memory, devices or the
/// generator. The name of one that does not, or of a wanted one without a JSON form (a complex number, a list of
/// numbers that depend on data), is stored in `unsupported`, which otherwise stays unchanged. Throws Error for a name
/// that the schema lacks.
Json call_arguments(const graph::Node& node, std::span<const std::string_view> wanted,
                    const std::function<int(graph::ValueId)>& number_of, std::string& unsupported);

}  // namespace plumbline::conformance
