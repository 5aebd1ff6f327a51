// A stage whose forward and backward are two graphs cut from its joint graph: the partitioner (runtime/partition), not
// autograd, chooses the values saved between them and those that the backward recomputes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/engine/stage/remat_options.h"
#include "runtime/partition/run/run.h"
#include "runtime/transport/transport.h"

namespace plumbline::engine {

/// The partitions of one stage: one for each shape of micro-batch, for each layout in which inputs arrive, since what a
/// kernel does, and so its bits, depends on strides, and for each choice of parameters that require a gradient. Those
/// of contiguous inputs are made at once. Of each shape the last kMaxPartitions used are kept; another one is made
/// again when it is needed.
class PartitionedStage {
 public:
  /// Per shape of micro-batch.
  static constexpr size_t kMaxPartitions = 8;

  /// `graphs` by variant: the captures of the stage, bound to its parameters; they must outlive this object.
  /// `has_gradient` comes from gradients_that_come_back(). Traces each graph once (trace_stage()). Throws InputError
  /// naming the stage for a graph that cannot be traced or partitioned.
  PartitionedStage(int stage, std::vector<const graph::Graph*> graphs, std::vector<char> has_gradient,
                   RematOptions options);
  ~PartitionedStage();
  PartitionedStage(const PartitionedStage&) = delete;
  PartitionedStage& operator=(const PartitionedStage&) = delete;

  /// The partition for inputs like these: made now for a new layout, or for a new set of parameters that require a
  /// gradient. Nullptr if the stage has nothing to differentiate. Valid until the next call; its completed runs keep
  /// the data that their backward needs. Not inside a RandomTurn.
  partition::PartitionedGraph* of(int variant, std::span<const at::Tensor> inputs);

  /// The first choices for contiguous inputs, by variant, as one line that is equal on every rank with the same choice:
  /// the certificate, the saved values, and the number of calls that run twice.
  const std::vector<std::string>& choices() const { return choices_; }

  /// The number of partitions kept for a variant.
  size_t kept(int variant) const { return partitions_[variant].size(); }

 private:
  /// The key of a partition.
  struct Made {
    std::vector<std::vector<int64_t>> strides;  // by input; empty: contiguous
    std::vector<char> requires_grad;            // by attribute of the graph
    std::unique_ptr<partition::PartitionedGraph> partition;

    bool is_for(const graph::Graph& graph, std::span<const at::Tensor> inputs) const;
  };
  Made make(int variant, std::span<const at::Tensor> inputs) const;

  int stage_;
  std::vector<const graph::Graph*> graphs_;
  std::vector<char> has_gradient_;
  RematOptions options_;
  std::vector<std::vector<Made>> partitions_;  // by variant; most recently used first
  std::vector<std::string> choices_;
};

/// The choices of a rank for a stage that it does not partition.
std::vector<std::string> no_choices(size_t variants);

/// Every rank that holds a stage must have made the same choice for it; otherwise replicas would sum gradients of
/// different bits and hold more or less memory than planned. `choices`: PartitionedStage::choices() of this rank's
/// stages, or no_choices(). Throws Error with both choices. Every rank calls it, whether it partitions or not.
void check_same_choices(const std::map<int, std::vector<std::string>>& choices, transport::Transport& transport,
                        const transport::Deadline& deadline);

}  // namespace plumbline::engine
