// The arguments of a node in an exported program, as the operator's schema wants them.
#pragma once

#include <ATen/core/function_schema.h>

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/graph/graph.h"

namespace plumbline::capture::pt2 {

/// What a name of the program stands for: a value of the graph, or a constant (None, or a number known beforehand).
struct Meaning {
  graph::ValueId value = graph::kNoValue;
  c10::IValue constant;

  bool is_value() const { return value != graph::kNoValue; }
};

using Lookup = std::function<Meaning(const std::string& name)>;

/// `argument` is the schema's tagged union ({"as_int": 3}, {"as_tensor": {"name": "x"}}, ...). Numbers take the type
/// that `formal` asks for (an int for a float becomes a double; one number for a list becomes the list); a number for a
/// tensor stays a number, which the executor wraps. Devices become the CPU, where the program's tensors are.
/// Error saying what is wrong or not supported; the caller adds the node.
graph::Argument convert_argument(const nlohmann::json& argument, const c10::Argument& formal, const Lookup& lookup);

/// The one tag of such a union, "as_int" and so on. Error when there is not exactly one.
std::string tag_of(const nlohmann::json& argument);

/// A constant or named number, or a tensor: what stands by itself, without a schema (inputs of subgraphs).
Meaning plain_meaning(const nlohmann::json& argument, const Lookup& lookup);

}  // namespace plumbline::capture::pt2
