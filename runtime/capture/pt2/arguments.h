// Converts the arguments of a node in an exported program to the operator's schema.
#pragma once

#include <ATen/core/function_schema.h>

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/graph/graph.h"

namespace plumbline::capture::pt2 {

/// The referent of a name in the program: a value of the graph or, if `value` is kNoValue, a constant (None, a number,
/// a string).
struct Meaning {
  graph::ValueId value = graph::kNoValue;
  c10::IValue constant;

  bool is_value() const { return value != graph::kNoValue; }
};

using Lookup = std::function<Meaning(const std::string& name)>;

/// Converts `argument`, a tagged union of the export schema ({"as_int": 3}, {"as_tensor": {"name": "x"}}, ...), for the
/// parameter `formal` of the operator. Numbers take the type that `formal` requires (an int for a float becomes a
/// double; one number for a list becomes a list of the length that `formal` fixes); a number for a tensor stays a
/// number, which Program wraps. Every device except meta becomes the CPU, where the program's tensors are. Throws Error
/// for a wrong or unsupported argument, without naming the node.
graph::Argument convert_argument(const nlohmann::json& argument, const c10::Argument& formal, const Lookup& lookup);

/// Returns the tag of such a union ("as_int"). Throws Error unless there is exactly one.
std::string tag_of(const nlohmann::json& argument);

/// Converts an argument without a schema (an input of a subgraph, an output): a tensor, a named number or a constant.
/// Throws Error for any other tag.
Meaning plain_meaning(const nlohmann::json& argument, const Lookup& lookup);

}  // namespace plumbline::capture::pt2
