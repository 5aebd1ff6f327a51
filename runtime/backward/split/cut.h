// The cut of a stage's autograd graph between an input half and a weight half.
//
// I: the nodes from which an input can be reached. P: the other nodes. A node of I with an edge into P is on the
// frontier. The first half executes I, the second half P, and a frontier node is cut in one of two places:
//   before   The node's incoming gradients are kept, and the node is executed once in each half, with only that half's
//            edges valid. For nodes that compute the gradients of their edges separately, at a cost worth deferring
//            (matrix products, convolutions, halved_node.h): nothing is computed twice, the weight gradient is
//            deferred.
//   after    The node is executed once, in the first half, and its gradients for P are kept. For all other nodes: the
//            backward of a norm computes all its gradients in one pass, the gradients of gains, biases and scales are
//            small, and a user's hook or function runs once, as in a full backward.
// So the two halves execute each operation once. Sums have the order of the full backward: autograd executes ready
// nodes by descending sequence number, and both halves keep these numbers. (Each thread counts its own numbers: if the
// forward of one micro-batch ran on several threads, the order of sums may differ.)
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/backward/split/graph_walk.h"

namespace plumbline::backward {

/// A node at which the second half starts, and the gradients that flow into this node.
struct Seed {
  NodeHandle node;
  std::vector<at::Tensor> grads;  ///< by input of the node; undefined if none arrived, and for a HalvedNode
  std::string name;               ///< autograd's name of the frontier node; empty for a root
};

/// The graph of one micro-batch between the cut and the end of its second half. Nodes that several micro-batches share
/// (a parameter's accumulator) are not changed.
class Cut {
 public:
  /// Removes the edges from I into P and inserts hooks; a backward from the roots in I is now the first half. Without
  /// `retain`, a node of I that the second half does not need frees its saved values as soon as it has run. `walk` and
  /// `inputs` are not used afterwards.
  Cut(const GraphWalk& walk, const StageInputs& inputs, bool retain);
  /// Restores edges and hooks: all of them with `retain`; otherwise only those that turn() has not consumed.
  ~Cut();
  Cut(const Cut&) = delete;
  Cut& operator=(const Cut&) = delete;

  /// Call once, after the first half. Removes the cut's hooks, takes users' hooks off the nodes that are executed
  /// again, and moves edges so that a backward from the seeds is the second half. Returns one seed for each frontier
  /// node that was executed, by descending sequence number (the order of execution).
  std::vector<Seed> turn();

 private:
  class Holder;
  class Capture;
  class Release;
  /// An edge that was moved.
  struct Moved {
    torch::autograd::Node* node;
    uint32_t place;
    torch::autograd::Edge edge;
  };
  struct Before;
  struct After;

  void cut_before(torch::autograd::Node& node, const GraphWalk& walk, const StageInputs& inputs);
  void cut_after(torch::autograd::Node& node, const GraphWalk& walk, const StageInputs& inputs);
  void redirect(torch::autograd::Node& node, const StageInputs& inputs);
  void release_when_done(torch::autograd::Node& node);
  void take_hooks_out();
  static void put_back(std::vector<Moved>& edges);

  bool retain_;
  std::vector<std::unique_ptr<Before>> before_;
  std::vector<After> after_;
  std::vector<Moved> redirected_;  // towards inputs that are no leaves
  std::vector<std::pair<NodeHandle, uintptr_t>> releases_;
};

/// Whether the node computes the gradients of its edges separately. Such a node is cut before, unless it has post
/// hooks.
bool is_divisible(const torch::autograd::Node& node);

}  // namespace plumbline::backward
