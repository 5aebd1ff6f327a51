// A stage as an exported program has it: functional calls of the opset on numbered values, with every shape written
// out.
//
// Values are never changed: what the model does in place has become a new value, and what a stage leaves in a buffer is
// one of its results. Random layers have become multiplications by masks, which are inputs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::conformance {

/// Keys in the order in which they were written: files are read by people as well.
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

/// A value under a name: an input, a parameter, a buffer, a constant, an output. -1: none.
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
  /// What the stage leaves in a buffer, where it changes it.
  std::vector<PortableName> buffer_updates;
};

/// Throws InputError, opened by `where`, naming the call that has no form in the opset.
PortableStage portable_stage(const graph::Graph& graph, const std::string& where);

/// A graph that draws the masks of `graph` as it would: it has them as further outputs, in the order of
/// PortableStage::masks, and multiplies by them, so that what follows sees the values that it would see.
graph::Graph with_masks_as_outputs(const graph::Graph& graph);

}  // namespace plumbline::conformance
