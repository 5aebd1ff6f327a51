// GraphBuilder: appends the nodes of an exported program's graph to a Graph.
//
// torch.ops calls become calls of the dispatcher; Python's operators on symbolic numbers become plumbline::number_*.
// The subgraphs of wrap_with_set_grad_enabled and wrap_with_autocast are inlined, and their modes are set on the
// inlined nodes. cond becomes plumbline::cond. Every other higher-order operator is refused. Nodes that only check a
// symbol (_assert_scalar, sym_constrain_range, _assert_tensor_metadata) have kernels and are calls like any other.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/capture/pt2/arguments.h"
#include "runtime/capture/pt2/module_calls.h"
#include "runtime/graph/graph.h"

namespace plumbline::capture::pt2 {

/// The binding of a name in the program. An attribute gets its value in the graph when it is first used.
struct Binding {
  enum class Kind { Value, Attribute, Constant };
  Kind kind = Kind::Value;
  int32_t index = graph::kNoValue;  ///< Value: a ValueId; Attribute: an index in Graph::attributes
  c10::IValue constant;
};

/// The bindings of one graph by name; each subgraph has its own.
using Names = std::unordered_map<std::string, Binding>;

/// The modes that apply to a node.
struct Region {
  bool grad_enabled = true;
  int32_t autocast = -1;  ///< index in Graph::autocast; -1: none
};

class GraphBuilder {
 public:
  /// `graph` must outlive the builder.
  explicit GraphBuilder(graph::Graph& graph) : graph_(graph), modules_(graph.module_calls) {}

  /// Appends the nodes of `source` (a Graph of the export schema) and binds the names that they define in `names`.
  /// Throws InputError naming the node, its operator and its module for an operator without a CPU kernel in this
  /// process, an unsupported higher-order operator or argument, and a malformed node.
  void add_nodes(const nlohmann::json& source, Names& names, const Region& region = {});

  /// Returns the current meaning of `name`: for a tensor changed in place, the result of the last change. Throws Error
  /// for a name that `names` does not bind.
  Meaning resolve(const Names& names, const std::string& name);

  /// Appends a call that converts a number to a tensor without dimensions, since graphs return tensors. Returns the
  /// tensor.
  graph::ValueId as_tensor(graph::ValueId number);

 private:
  void add_node(const nlohmann::json& source, const nlohmann::json& node, Names& names, const Region& region);
  void add_call(const nlohmann::json& source, const nlohmann::json& node, const c10::OperatorHandle& op,
                bool by_position, Names& names, const Region& region);
  void add_region(const nlohmann::json& node, const nlohmann::json& subgraph, size_t first_operand, Names& names,
                  const Region& region);
  void add_cond(const nlohmann::json& source, const nlohmann::json& node, Names& names, const Region& region);
  void inline_graph(const nlohmann::json& node, const nlohmann::json& subgraph, const std::vector<Binding>& operands,
                    Names& names, const Region& region);
  int32_t add_autocast(const nlohmann::json& node, int32_t outer);
  graph::Result define(const nlohmann::json& source, const nlohmann::json& output, Names& names);
  graph::ValueId define_tensor(const nlohmann::json& source, const std::string& name, Names& names);
  Binding operand(const nlohmann::json& argument, const Names& names);
  Lookup lookup_in(const Names& names);
  void append(graph::Node node, const nlohmann::json& source);
  graph::ValueId latest(graph::ValueId v);

  graph::Graph& graph_;
  ModuleCallTracker modules_;
  std::vector<graph::ValueId> changed_to_;  // by value: the result of the in-place call that changed it
};

/// Returns dtype, sizes and requires_grad from the program's metadata; a symbolic size becomes its hint, or 0 without
/// one.
graph::Value value_of_meta(const nlohmann::json& meta);

}  // namespace plumbline::capture::pt2
