// A stage in the form of an exported program: functional calls of the opset on numbered values with explicit shapes.
//
// Values never change: an in-place operator of the model makes a new value, and the new value of a buffer is a result
// of the stage. A stage draws no random numbers: a dropout becomes a multiplication by a mask, and the mask is an input
// of the stage, as are the results of rand, randn and bernoulli. Every int below indexes PortableStage::values.
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

/// A call of an operator in the opset.
struct PortableNode {
  std::string op;                   ///< "aten::add.Tensor"
  Json arguments = Json::object();  ///< by name, as call_arguments() returns them
  std::vector<int> results;
};

/// A named input, mask, parameter, buffer or buffer update of a stage.
struct PortableName {
  std::string name;
  int value = -1;  ///< -1: the stage has no such value, since it does not use it
};

struct PortableStage {
  std::vector<PortableName> inputs;  ///< in the order of Graph::inputs
  /// Masks of dropouts and results of random operators, in the order in which the stage draws them; the attributes in
  /// the order of Graph::attributes.
  std::vector<PortableName> masks, parameters, buffers;
  std::vector<std::pair<int, at::Tensor>> constants;
  std::vector<PortableValue> values;
  std::vector<PortableNode> nodes;  ///< in execution order
  std::vector<int> outputs;         ///< in the order of Graph::outputs; -1: None
  /// The new values of the buffers that the stage changes, under the names of the buffers.
  std::vector<PortableName> buffer_updates;
};

/// Lowers the graph of a stage to the opset. Throws InputError, whose text begins with `where` and names the call, for
/// an operator, argument, branch, autocast region or in-place change that the opset cannot express.
PortableStage portable_stage(const graph::Graph& graph, const std::string& where);

/// Returns a copy of `graph` that also outputs its random numbers, after the other outputs and in the order of
/// PortableStage::masks. Each dropout draws its mask separately and multiplies by it. From the same state of the
/// generator, all other values equal those of `graph`.
graph::Graph with_masks_as_outputs(const graph::Graph& graph);

}  // namespace plumbline::conformance
