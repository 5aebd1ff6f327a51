// Running a partition: its forward and backward graphs through the dispatcher, wrapped as one autograd function, so
// that a pipeline stage can use it in place of the interpreter.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/partition/partition.h"
#include "runtime/partition/trace/trace.h"

namespace plumbline::partition {

/// A subgraph bound to operators and constants: a call costs its kernels and little more. A value is released at its
/// last use, or gives its memory to the result (joint/overwriting.h). Not thread safe: one runner serves one thread at
/// a time.
class SubgraphRunner {
 public:
  /// Throws InputError naming the node for an operator that does not exist or an argument that cannot be executed.
  SubgraphRunner(const JointGraph& graph, const Subgraph& part, const std::map<std::string, at::Tensor>& constants,
                 std::span<const NodeIndex> replayed);
  ~SubgraphRunner();
  SubgraphRunner(SubgraphRunner&&) noexcept;
  SubgraphRunner& operator=(SubgraphRunner&&) noexcept;

  /// Runs once, below autograd and autocast. `inputs` in the order of the subgraph's, released as soon as they are used
  /// when they are moved in (undefined where a number stands); writes one value for each output, undefined for None and
  /// numbers. The states of the random calls `replayed` are recorded into `states` by the forward (record = true), and
  /// replayed from it by the backward, which must not be inside a RandomTurn. Calls of the forward have the grad mode
  /// that they were traced in (off, in a forward of a caller who records none), in both parts; the others have none. An
  /// error of a kernel comes back as Error with the node's name.
  void run(std::vector<at::Tensor> inputs, std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& states,
           bool record);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct PartitionedCall;

/// A traced and partitioned graph as a differentiable call: what Interpreter::run() does for the graph that was traced,
/// with the saved values of the partition kept in between. Several threads may use it: forwards run one at a time, and
/// so do backwards (one of each may run together); any number of runs may be between their forward and their backward.
class PartitionedGraph {
 public:
  PartitionedGraph(const graph::Graph& graph, JointTrace trace, Partition partition);
  ~PartitionedGraph();
  PartitionedGraph(PartitionedGraph&&) noexcept;

  /// As Interpreter::run(): inputs and outputs of the traced graph, autograd recorded where the caller's grad mode
  /// allows it; parameters get their gradients by its backward. Buffers are written at the end of the forward.
  void run(std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs);

  const Partition& partition() const;

 private:
  std::shared_ptr<PartitionedCall> call_;
};

}  // namespace plumbline::partition
