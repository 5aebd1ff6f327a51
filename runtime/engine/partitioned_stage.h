// A stage whose forward and backward are two graphs cut out of its joint graph: what it keeps from the one to the
// other, and what the backward computes again, is the partitioner's choice (runtime/partition) instead of autograd's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/partition/run/run.h"
#include "runtime/transport/transport.h"

namespace plumbline {

/// Rematerialisation: which values are saved, by what rules.
struct RematOptions {
  std::string mode;                   ///< as parse_partition_mode() takes it; empty: what autograd saves
  std::string policy = "torch-2.15";  ///< as load_policy() takes it

  bool on() const { return !mode.empty(); }
};

/// "none", or "bytes (torch-2.15)".
std::string to_string(const RematOptions& options);
/// Throws InputError for a mode or a policy that does not exist, and where stages are to be run again as a whole as
/// well
/// (`recompute`).
void check_remat(const RematOptions& options, bool recompute);

/// The partitions of one stage: one for each shape of micro-batch, and for each layout in which inputs arrive, since
/// what a kernel does, and so its bits, depends on strides. Those of contiguous inputs are made at once.
class PartitionedStage {
 public:
  /// `graphs` by variant: the captures of the stage, bound to its parameters; they must outlive this object.
  /// `has_gradient` as gradients_that_come_back() has it. Traces each graph once, on zeros. Throws
  /// InputError naming the stage for one that cannot be traced or partitioned.
  PartitionedStage(int stage, std::vector<const Graph*> graphs, std::vector<char> has_gradient, RematOptions options);
  ~PartitionedStage();
  PartitionedStage(const PartitionedStage&) = delete;
  PartitionedStage& operator=(const PartitionedStage&) = delete;

  /// The partition for inputs like these: made now, where their layout is new. Nullptr where the stage has nothing to
  /// differentiate. Not inside a RandomTurn.
  PartitionedGraph* of(int variant, std::span<const at::Tensor> inputs);

  /// What was chosen, by variant, in a line that is the same on every rank that chose the same: the certificate, what
  /// is saved, and how many calls run twice.
  std::vector<std::string> choices() const;

 private:
  using Layouts = std::map<std::string, std::unique_ptr<PartitionedGraph>>;
  std::unique_ptr<PartitionedGraph> make(int variant, std::span<const at::Tensor> inputs) const;

  int stage_;
  std::vector<const Graph*> graphs_;
  std::vector<char> has_gradient_;
  RematOptions options_;
  std::vector<Layouts> partitions_;  // by variant
};

/// Every rank that holds a stage must have chosen the same for it, or replicas would add up gradients of other bits and
/// hold other memory than was planned. `choices`: PartitionedStage::choices() of this rank's stages. Throws Error with
/// both choices. Every rank calls it.
void check_same_choices(const std::map<int, std::vector<std::string>>& choices, Transport& transport,
                        const Deadline& deadline);

}  // namespace plumbline
