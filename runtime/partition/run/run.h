// Running a partition: its forward and backward graphs through the dispatcher, wrapped as one autograd function that a
// pipeline stage uses in place of the captured graph.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/partition/partition.h"
#include "runtime/partition/trace/trace.h"

namespace plumbline::partition {

struct PartitionedCall;

/// A traced and partitioned graph as a differentiable call: what Program::run() does for the graph that was traced,
/// with the saved values of the partition kept in between. Thread safe; any number of runs may be between their forward
/// and their backward.
class PartitionedGraph {
 public:
  PartitionedGraph(const graph::Graph& graph, JointTrace trace, Partition partition);
  ~PartitionedGraph();
  PartitionedGraph(PartitionedGraph&&) noexcept;

  /// As Program::run(): inputs and outputs of the traced graph, autograd recorded where the caller's grad mode
  /// allows it; parameters get their gradients by its backward. Buffers are written at the end of the forward.
  void run(std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs);

  const Partition& partition() const;

 private:
  std::shared_ptr<PartitionedCall> call_;
};

}  // namespace plumbline::partition
