// A stage whose forward and backward are two graphs cut out of its joint graph: what it keeps from the one to the
// other, and what the backward computes again, is the partitioner's choice (runtime/partition) instead of autograd's.
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
  /// For each shape of micro-batch.
  static constexpr size_t kMaxPartitions = 8;

  /// `graphs` by variant: the captures of the stage, bound to its parameters; they must outlive this object.
  /// `has_gradient` as gradients_that_come_back() has it. Traces each graph once (trace_stage()). Throws
  /// InputError naming the stage for one that cannot be traced or partitioned.
  PartitionedStage(int stage, std::vector<const graph::Graph*> graphs, std::vector<char> has_gradient,
                   RematOptions options);
  ~PartitionedStage();
  PartitionedStage(const PartitionedStage&) = delete;
  PartitionedStage& operator=(const PartitionedStage&) = delete;

  /// The partition for inputs like these: made now, where their layout is new, or where other parameters than ever
  /// require a gradient. Nullptr where the stage has nothing to differentiate. Valid until the next call; what it has
  /// run keeps what its backward needs. Not inside a RandomTurn.
  partition::PartitionedGraph* of(int variant, std::span<const at::Tensor> inputs);

  /// What was chosen for contiguous inputs at first, by variant, in a line that is the same on every rank that chose
  /// the same: the certificate, what is saved, and how many calls run twice.
  const std::vector<std::string>& choices() const { return choices_; }

  /// How many partitions are kept for a variant.
  size_t kept(int variant) const { return partitions_[variant].size(); }

 private:
  /// What a partition was made for.
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
  std::vector<std::vector<Made>> partitions_;  // by variant; the last used first
  std::vector<std::string> choices_;
};

/// What a rank chose for a stage that it does not partition.
std::vector<std::string> no_choices(size_t variants);

/// Every rank that holds a stage must have chosen the same for it, or replicas would add up gradients of other bits and
/// hold other memory than was planned. `choices`: PartitionedStage::choices() of this rank's stages, or no_choices().
/// Throws Error with both choices. Every rank calls it, whether it partitions or not.
void check_same_choices(const std::map<int, std::vector<std::string>>& choices, transport::Transport& transport,
                        const transport::Deadline& deadline);

}  // namespace plumbline::engine
