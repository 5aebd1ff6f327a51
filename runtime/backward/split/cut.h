// The cut of a stage's autograd graph between an input half and a weight half.
//
// I: the nodes from which an input can be reached; P: the rest. A node of I with an edge into P is on the frontier. The
// first half executes I, the second P, and a frontier node is cut in one of two places:
//   before   its incoming gradients are kept, and it is executed once in each half with only that half's edges valid.
//            For nodes that compute the gradients of their edges separately, at a cost worth deferring (matrix
//            products, convolutions, halved_node.h): nothing is computed twice, and the weight gradient is deferred;
//   after    it is executed once, in the first half, and its gradients for P are kept. For everything else: a norm's
//            backward computes all its gradients in one pass, those of gains, biases and scales are small, and a user's
//            hook or function runs once, as in a full backward.
// So I then W executes each operation once. The order of sums is that of the full backward: autograd executes ready
// nodes by descending sequence number, and both halves keep those numbers. (Numbers are counted per thread: if one
// micro-batch's forward ran on several threads, the order of sums may differ.)
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/backward/split/graph_walk.h"

namespace plumbline::backward {

/// Where the second half starts, and the gradients that flow into it there.
struct Seed {
  NodeHandle node;
  std::vector<at::Tensor> grads;  ///< by input of the node; undefined where none came, and for a HalvedNode
  std::string name;               ///< of the frontier node
};

/// The graph of one micro-batch during its cut. Nodes that several micro-batches share (a parameter's accumulator) are
/// not changed.
class Cut {
 public:
  /// Removes the edges between I and P and inserts hooks: the nodes of I reachable from the roots are the first half
  /// now. Without `retain`, a node of I that the second half does not need frees its saved values as soon as it has
  /// run.
  Cut(const GraphWalk& walk, const StageInputs& inputs, bool retain);
  /// Restores the graph: the part that was not consumed, if it is not retained.
  ~Cut();
  Cut(const Cut&) = delete;
  Cut& operator=(const Cut&) = delete;

  /// After the first half: removes all hooks, including users' hooks on nodes that are executed again, and redirects
  /// edges, so that the nodes reachable from the seeds are the second half. Returns one seed for each frontier node
  /// that was executed, in the order of execution.
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

/// Whether the node is cut before: it computes the gradients of its edges separately.
bool is_divisible(const torch::autograd::Node& node);

}  // namespace plumbline::backward
