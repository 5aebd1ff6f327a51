// A call of a joint graph, bound to LibTorch's operator once, so that carrying it out costs little more than its
// kernel.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <vector>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

struct BoundCall {
  c10::OperatorHandle op;
  /// One for each argument of the schema, defaults filled in; None where a value goes.
  std::vector<c10::IValue> arguments;
  struct Fill {
    uint32_t position;
    NodeIndex node;
  };
  std::vector<Fill> fills;
  struct ListFill {
    uint32_t position;
    bool optional;                 ///< Tensor?[], else Tensor[]
    std::vector<NodeIndex> nodes;  ///< kNoNode: None
  };
  std::vector<ListFill> list_fills;
};

/// Binds a node of kind Call. Symbolic numbers, and nodes that are numbers, stand for their hints. A number where the
/// operator takes a tensor is passed as a tensor of no dimension that is no more than a number to type promotion.
/// A graph is traced for one layout. `any_layout`: what the call takes may come in another one (the expanded gradient
/// of a sum, and what is made from it). There aten::view is bound as aten::reshape, which does what autograd's formulas
/// do, and on the traced layout is the view.
///
/// Throws InputError naming the node: an operator that does not exist, an argument that its schema does not have or
/// take, or one that only Python understands.
BoundCall bind_call(const JointGraph& graph, const JointNode& node, bool any_layout = false);

/// "float32" -> at::kFloat. Throws InputError for a name that PyTorch does not use.
at::ScalarType scalar_type_of(const std::string& name);

}  // namespace plumbline::partition
