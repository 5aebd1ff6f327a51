// The JSON form of a graph: written by `plumbline split -o` and sent between ranks. It holds everything except the
// tensors of attributes, which are stored separately: also storage numbers, module calls, autocast regions, branches
// and the types of constants.
//
//   {"format": "plumbline-graph/1",
//    "values": [{"kind": "tensor", "dtype": "f32", "sizes": [4,8], "requires_grad": true, "storage": 0}, ...],
//    "inputs": [{"name": "x", "value": 0}],
//    "attributes": [{"kind": "parameter", "name": "w", "aliases": [], "persistent": true, "value": 1}],
//    "autocast": [{"device": "cpu", "dtype": "bf16", "enabled": true, "cache": true, "outer": null}],
//    "nodes": [{"op": "aten::mm", "arguments": [{"value": 0}, {"value": 1}], "results": [{"value": 2}],
//               "grad_enabled": true, "autocast": null}],
//    "outputs": [2],
//    "module_calls": [{"name": "fc", "type": "Linear", "begin": 0, "end": 1}]}
//
// An argument is a "value", "tensors" or "optional_tensors" (lists of values, null for None), "numbers" with "constant"
// (a list of values, with null for an element that the constant list provides) or a "constant" (json_constant.h). A
// result is a "value" or a "list". A split marker has the op null; a cond has "branches", two graphs without "format".
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "runtime/graph/graph.h"
#include "runtime/io/json_place.h"

namespace plumbline::graph {

/// Throws Error for a constant without a JSON form.
nlohmann::json to_json(const Graph& graph);

/// The attributes of the result have no tensors: bind them before a run. Throws InputError naming the place and the
/// expected value for another format or version, an operator that this LibTorch does not have, arguments and results
/// that differ in number from its schema, a constant that the schema does not take, and values that are undefined or
/// defined twice.
Graph graph_from_json(const JsonPlace& place);

nlohmann::json to_json(const Value& value);
Value value_from_json(const JsonPlace& place);

}  // namespace plumbline::graph
