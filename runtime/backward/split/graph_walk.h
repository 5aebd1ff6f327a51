// Which nodes one backward would execute, and which of them can reach an input of the stage.
#pragma once

#include <c10/util/flat_hash_map.h>
#include <torch/csrc/autograd/function.h>

#include <vector>

#include "runtime/backward/split/stage_inputs.h"

namespace plumbline::backward {

/// Walks every node that a backward from `roots` would execute, once, in linear time and without recursion; it does not
/// follow edges that belong to inputs. Writes nothing to the graph, so graphs that share leaves may be walked
/// concurrently.
class GraphWalk {
 public:
  GraphWalk(const torch::autograd::edge_list& roots, const StageInputs& inputs);

  /// Nodes in an order in which successors come first; a node's position in it is its index.
  const std::vector<torch::autograd::Node*>& nodes() const { return nodes_; }
  bool reaches_input(int index) const { return reaches_input_[index]; }
  /// The index of a walked node.
  int index(const torch::autograd::Node* node) const { return index_.at(const_cast<torch::autograd::Node*>(node)); }

 private:
  struct Frame;
  void walk(torch::autograd::Node* root, const StageInputs& inputs, std::vector<Frame>& open);

  std::vector<torch::autograd::Node*> nodes_;
  std::vector<char> reaches_input_;
  ska::flat_hash_map<torch::autograd::Node*, int> index_;  // -1 while a node is open
};

}  // namespace plumbline::backward
