// Runs each node of a graph separately, forward and backward, on the tensors of a real run, to measure single nodes.
#pragma once

#include <functional>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/graph/run/program.h"

namespace plumbline::split {

/// One node as a separate program. forward() and backward() do not affect the rest of the graph: they run on detached
/// operands, which are leaves that require a gradient if the captured values did, and copies if the node writes them in
/// place.
class NodeAlone {
 public:
  /// `values`, indexed by ValueId, has the values computed so far. Neither `graph` nor `values` needs to outlive the
  /// object.
  NodeAlone(const graph::Graph& graph, size_t node, const std::vector<c10::IValue>& values);

  /// Runs the node on the detached operands, and records gradients if the model did. May be called repeatedly.
  void forward();
  /// Returns a gradient of ones for each result of the last forward() that requires a gradient.
  std::vector<at::Tensor> ones() const;
  /// Runs autograd from those results to the operands, once for each forward(). `gradients`: one for each element of
  /// ones(). Does nothing if no result requires a gradient.
  void backward(const std::vector<at::Tensor>& gradients);

  /// The graph's tensors that the node reads, each once, not detached; may be undefined.
  const std::vector<at::Tensor>& operands() const { return operands_; }
  /// Runs the node on operands(), without gradients, and stores the results in `values`, indexed by ValueId.
  void run(std::vector<c10::IValue>& values);

 private:
  /// A result of the node: its id in the graph, and in `alone_`.
  struct Definition {
    graph::ValueId value, local;
  };

  graph::Graph alone_;
  std::vector<Definition> definitions_;
  std::vector<at::Tensor> operands_;
  std::vector<at::Tensor> detached_;
  std::vector<at::Tensor> roots_;
  std::optional<graph::Program> program_;
};

/// Runs `graph` once on `inputs`, node after node in program order, without gradients, and calls `visit` for each node,
/// markers excepted, before it runs. Afterwards inputs, parameters, buffers and the default random generator are
/// restored, also after an exception. Throws InputError if the inputs differ from the captured ones in number, dtype or
/// shape, or if an attribute has no tensor.
void for_each_node_alone(const graph::Graph& graph, const std::vector<at::Tensor>& inputs,
                         const std::function<void(size_t node, NodeAlone&)>& visit);

}  // namespace plumbline::split
