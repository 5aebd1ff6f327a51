// Each node of a graph by itself, forward and backward, on the tensors that it really meets: what measurements of
// nodes stand on.
#pragma once

#include <functional>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/graph/run/program.h"

namespace plumbline::split {

/// One node at its turn, as a program of its own. Its operands are detached, leaves that require a gradient where the
/// captured values did, and copies where it writes in place: nothing that happens here reaches the rest of the graph.
class NodeAlone {
 public:
  /// `values` holds what the graph has computed so far, by ValueId.
  NodeAlone(const graph::Graph& graph, size_t node, const std::vector<c10::IValue>& values);

  /// Runs the node on the detached operands, and records gradients where the model did.
  void forward();
  /// What backward() begins with: a gradient of ones for each result of forward() that requires one.
  std::vector<at::Tensor> ones() const;
  /// Plain autograd from the results to the operands; does nothing where no result requires a gradient.
  void backward(const std::vector<at::Tensor>& gradients);

  /// The tensors that the node reads, as the graph has them; each once.
  const std::vector<at::Tensor>& operands() const { return operands_; }
  /// Runs the node on the tensors of the graph themselves, without gradients, and puts its results into `values`.
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

/// Runs `graph` once on `inputs`, node after node in program order, without gradients; `visit` gets each call at its
/// turn, before it happens. Afterwards inputs, parameters, buffers and the default random generator are as they were.
/// Throws InputError: inputs of another number, dtype or shape than the captured ones; an attribute without a tensor.
void for_each_node_alone(const graph::Graph& graph, const std::vector<at::Tensor>& inputs,
                         const std::function<void(size_t node, NodeAlone&)>& visit);

}  // namespace plumbline::split
