// A stage in the form of an exported program: functional calls of the opset on numbered values with explicit shapes.
//
// Values never change: an in-place change of the model becomes a new value, and the new value of a buffer is a result
// of
// the stage. Random layers become multiplications by masks, which are inputs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::conformance {

/// Keeps the order of its keys, for readable files.
using Json = nlohmann::ordered_json;

struct PortableValue {
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;
};

struct PortableNode {
  std::string op;
  Json arguments = Json::object();
  std::vector<int> results;
};

/// A named value: an input, a parameter, a buffer, a constant or an output. -1: none.
struct PortableName {
  std::string name;
  int value = -1;
};

struct PortableStage {
  std::vector<PortableName> inputs;  ///< as Graph::inputs
  std::vector<PortableName> masks, parameters, buffers;
  std::vector<std::pair<int, at::Tensor>> constants;
  std::vector<PortableValue> values;
  std::vector<PortableNode> nodes;
  std::vector<int> outputs;  ///< as Graph::outputs
  /// The new values of the buffers that the stage changes.
  std::vector<PortableName> buffer_updates;
};

/// Throws InputError that starts with `where` and names the call without a form in the opset.
PortableStage portable_stage(const graph::Graph& graph, const std::string& where);

/// A graph that draws the same masks as `graph`, returns them as additional outputs, in the order of
/// PortableStage::masks, and multiplies by them, so that the following nodes have the same values.
graph::Graph with_masks_as_outputs(const graph::Graph& graph);

}  // namespace plumbline::conformance
