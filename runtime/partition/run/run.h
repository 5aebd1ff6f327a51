// Runs a partition: one autograd function that executes the forward and the backward graph through the dispatcher. A
// pipeline stage uses it in place of the captured graph.
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

/// A traced and partitioned graph as a differentiable call. Behaves as Program::run() of the traced graph, but keeps
/// the partition's saved values between forward and backward. Thread-safe; any number of runs may be between forward
/// and backward, and their autograd nodes may outlive this object.
class PartitionedGraph {
 public:
  /// `partition` must be one of `trace.graph`, and `trace` a trace of `graph`; aborts otherwise. Shares the tensors of
  /// `graph`'s attributes; `graph` itself need not outlive this object. Throws InputError as lower() does.
  PartitionedGraph(const graph::Graph& graph, JointTrace trace, Partition partition);
  ~PartitionedGraph();
  PartitionedGraph(PartitionedGraph&&) noexcept;

  /// Takes the inputs of the traced graph and replaces `outputs` by its outputs. Records an autograd node if the
  /// caller's grad mode is enabled and an input or parameter requires a gradient. Written buffers are updated at the
  /// end of the forward. The backward has no second derivative.
  void run(std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs);

  const Partition& partition() const;

 private:
  std::shared_ptr<PartitionedCall> call_;
};

}  // namespace plumbline::partition
