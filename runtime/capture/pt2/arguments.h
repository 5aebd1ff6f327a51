// Converts the arguments of a node in an exported program to the operator's schema.
#pragma once

#include <ATen/core/function_schema.h>

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/graph/graph.h"

namespace plumbline::capture::pt2 {

/// The referent of a name in the program: a value of the graph, or a constant (None, or a number known beforehand).
struct Meaning {
  graph::ValueId value = graph::kNoValue;
  c10::IValue constant;

  bool is_value() const { return value != graph::kNoValue; }
};

using Lookup = std::function<Meaning(const std::string& name)>;

/// `argument` is the schema's tagged union ({"as_int": 3}, {"as_tensor": {"name": "x"}}, ...). Numbers take the type
/// that `formal` requires (an int for a float becomes a double; one number for a list becomes the list); a number for a
/// tensor stays a number, which the executor wraps. Devices become the CPU, where the program's tensors are. Throws
/// Error for a wrong or unsupported argument; the caller adds the node.
graph::Argument convert_argument(const nlohmann::json& argument, const c10::Argument& formal, const Lookup& lookup);

/// The one tag of such a union, "as_int" and so on. Throws Error when there is not exactly one.
std::string tag_of(const nlohmann::json& argument);

/// A constant or named number, or a tensor: arguments without a schema (inputs of subgraphs).
Meaning plain_meaning(const nlohmann::json& argument, const Lookup& lookup);

}  // namespace plumbline::capture::pt2
