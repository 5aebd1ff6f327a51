// Runs each node of a graph by itself, forward and backward, on the tensors of a real run, for measurements of nodes.
#pragma once

#include <functional>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/graph/run/program.h"

namespace plumbline::split {

/// One node at its turn, as a separate program. Its operands are detached, leaves that require a gradient if the
/// captured values did, and copies if it writes them in place: its runs do not affect the rest of the graph.
class NodeAlone {
 public:
  /// `values` holds the values computed so far, by ValueId.
  NodeAlone(const graph::Graph& graph, size_t node, const std::vector<c10::IValue>& values);

  /// Runs the node on the detached operands, and records gradients if the model did.
  void forward();
  /// The start of backward(): a gradient of ones for each result of forward() that requires one.
  std::vector<at::Tensor> ones() const;
  /// Plain autograd from the results to the operands; does nothing if no result requires a gradient.
  void backward(const std::vector<at::Tensor>& gradients);

  /// The graph's own tensors that the node reads; each once.
  const std::vector<at::Tensor>& operands() const { return operands_; }
  /// Runs the node on the tensors of the graph themselves, without gradients, and stores its results in `values`.
  void run(std::vector<c10::IValue>& values);

 private:
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

/// Runs `graph` once on `inputs`, node after node in program order, without gradients; `visit` gets each call before it
/// runs. Afterwards inputs, parameters, buffers and the default random generator are restored. Throws InputError:
/// inputs of another number, dtype or shape than the captured ones; an attribute without a tensor.
void for_each_node_alone(const graph::Graph& graph, const std::vector<at::Tensor>& inputs,
                         const std::function<void(size_t node, NodeAlone&)>& visit);

}  // namespace plumbline::split
