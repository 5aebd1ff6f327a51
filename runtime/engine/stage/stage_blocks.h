// Recompute of a stage, or of parts of it, in the backward: the choice of the parts, and their execution.
//
// The cost is one more forward of each recomputed block. The gain is memory: between forward and backward a block keeps
// only its inputs, not autograd's saved values.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/engine/stage/recompute_options.h"
#include "runtime/graph/graph.h"
#include "runtime/split/pipe.h"

namespace plumbline::engine {

/// Throws InputError if `blocks_in` names a module directly inside which no module was entered; not if a stage's graph
/// is empty (a stage of another rank).
void check_recompute(const RecomputeOptions& options, const split::Pipe& pipe);

/// Runs a stage's graph as a chain of blocks (runtime/backward/recompute.h). Blocks are cut from the graph like stages
/// and may share parameters: a parameter's gradient is summed inside each block, then over the blocks, the last block
/// first. A buffer (or constant) that a block writes changes in the forward only: the second run works on a copy of its
/// content before the first run.
class StageBlocks {
 public:
  /// `graph` must be bound to its tensors and is copied. `blocks_in` as in RecomputeOptions. Throws InputError if the
  /// graph cannot be cut into these blocks (split()), or if a recomputed block writes a parameter in place or has a
  /// parameter inside a branch of a cond. `device`: whose default generator the stage draws from.
  StageBlocks(const graph::Graph& graph, const std::string& blocks_in, c10::Device device = c10::kCPU);
  StageBlocks(StageBlocks&&) noexcept;
  ~StageBlocks();

  /// As Program::run(). A stage that draws random numbers must be run inside the caller's RandomTurn; its backward must
  /// not be inside a turn. The outputs may outlive this object, and their backward may run on another thread.
  void run(std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs);

 private:
  struct Piece;
  std::vector<Piece> pieces_;
  size_t boundaries_ = 0;  // between the pieces
};

}  // namespace plumbline::engine
