// PartitionedStage: a stage whose forward and backward are two graphs cut from its joint graph. The partitioner
// (runtime/partition), not autograd, chooses the values saved between them and the values that the backward recomputes.
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

/// The partitions of one stage: one for each combination of micro-batch shape (variant), layout of the inputs (a
/// kernel's choice of algorithm, and so its bits, depends on strides) and set of parameters that require a gradient.
/// The constructor makes the partitions for contiguous inputs. For each variant the kMaxPartitions most recently used
/// partitions are kept.
class PartitionedStage {
 public:
  /// The number of partitions kept per variant.
  static constexpr size_t kMaxPartitions = 8;

  /// `graphs`, indexed by variant: the captures of the stage, bound to its parameters; they must outlive this object.
  /// `has_gradient`, by graph, comes from gradients_that_come_back(). Traces each graph once (trace_stage()). Throws
  /// InputError naming the stage for a graph that cannot be traced or partitioned.
  PartitionedStage(int stage, std::vector<const graph::Graph*> graphs, std::vector<std::vector<char>> has_gradient,
                   RematOptions options);
  ~PartitionedStage();
  PartitionedStage(const PartitionedStage&) = delete;
  PartitionedStage& operator=(const PartitionedStage&) = delete;

  /// Returns the partition for inputs with these strides, and makes it if the layout or the set of parameters that
  /// require a gradient is new; throws InputError as the constructor does. Null if the stage has nothing to
  /// differentiate. The pointer is valid until the next call; completed runs keep the data that their backward needs.
  /// Must not be called inside a RandomTurn (random_turn.h).
  partition::PartitionedGraph* of(int variant, std::span<const at::Tensor> inputs);

  /// Indexed by variant: one line about the partition that the constructor made, equal on ranks with the same choice.
  /// The line has the certificate, the number and bytes of the saved values, and the number of calls that run twice.
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
  std::vector<std::vector<char>> has_gradient_;  // by variant
  RematOptions options_;
  std::vector<std::vector<Made>> partitions_;  // by variant; most recently used first
  std::vector<std::string> choices_;
};

/// The choices for a stage that is not partitioned.
std::vector<std::string> no_choices(size_t variants);

/// Checks that all ranks that hold a stage made the same choice for it; otherwise replicas would sum gradients of
/// different bits and need another amount of memory than planned. `choices`, by this rank's stages:
/// PartitionedStage::choices() or no_choices(). On a difference every rank throws Error with both choices. Every rank
/// calls this function, whether it partitions or not. Also throws as Transport::wait() does.
void check_same_choices(const std::map<int, std::vector<std::string>>& choices, transport::Transport& transport,
                        const transport::Deadline& deadline);

}  // namespace plumbline::engine
