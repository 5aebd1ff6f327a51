// GraphWalk: the nodes that one backward would execute, and which of them can reach an input of the stage.
#pragma once

#include <c10/util/flat_hash_map.h>
#include <torch/csrc/autograd/function.h>

#include <vector>

#include "runtime/backward/split/stage_inputs.h"

namespace plumbline::backward {

/// Visits every node that a backward from `roots` would execute, in linear time and without recursion; does not follow
/// edges that lead to inputs. Writes nothing to the graph, so graphs that share leaves may be walked concurrently. The
/// graph must outlive the walk.
class GraphWalk {
 public:
  GraphWalk(const torch::autograd::edge_list& roots, const StageInputs& inputs);

  /// The visited nodes; a node comes after all nodes to which its edges lead. A node's position is its index.
  const std::vector<torch::autograd::Node*>& nodes() const { return nodes_; }
  /// Whether an input can be reached from the node with this index.
  bool reaches_input(int index) const { return reaches_input_[index]; }
  /// The index of a visited node; throws std::out_of_range for another node.
  int index(const torch::autograd::Node* node) const { return index_.at(const_cast<torch::autograd::Node*>(node)); }

 private:
  struct Frame;
  void walk(torch::autograd::Node* root, const StageInputs& inputs, std::vector<Frame>& open);

  std::vector<torch::autograd::Node*> nodes_;
  std::vector<char> reaches_input_;
  ska::flat_hash_map<torch::autograd::Node*, int> index_;  // -1 while a node is open
};

}  // namespace plumbline::backward
