// Recompute of parts of a stage in the backward: the choice of the parts, and a stage that does it.
//
// The cost: one more forward of each such block. The gain: between forward and backward a block keeps only its inputs,
// not autograd's saved values.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/split/pipe.h"

namespace plumbline::engine {

/// The micro-batches for which a stage is recomputed; after torchgpipe's `checkpoint`. The last one's backward often
/// follows its forward soon, so that recompute gains little for it.
enum class Recompute { Never, ExceptLast, Always };

struct RecomputeOptions {
  Recompute policy = Recompute::Never;
  /// By stage, the exceptions to `policy`.
  std::map<int, Recompute> policy_of = {};
  /// Empty: a stage is one block. Otherwise every call of a module directly inside the one of this name is a block
  /// ("layers": layers.0, layers.1, ...; a module cut by stage borders is a block in each stage), and the rest of a
  /// stage is not recomputed. Only one block at a time is materialised during a backward.
  std::string blocks_in = {};

  bool on() const { return policy != Recompute::Never || !policy_of.empty(); }
  Recompute of(int stage) const {
    const auto it = policy_of.find(stage);
    return it == policy_of.end() ? policy : it->second;
  }
};

/// "never", "except-last" or "always".
std::string to_string(Recompute policy);
/// The inverse. Throws InputError for anything else.
Recompute parse_recompute(const std::string& text);

/// Throws InputError if options name a stage that `pipe` does not have, or a module in which none was entered (unless
/// stages are missing in `pipe`: another rank's, whose graphs are empty).
void check_recompute(const RecomputeOptions& options, const split::Pipe& pipe);

/// Runs a stage's graph as a chain of blocks (runtime/backward/recompute.h). Blocks are cut from the graph like stages,
/// and share parameters: a parameter's gradient is summed in each block, then over the blocks, the last first. A buffer
/// (or constant) that a block writes is written in the forward alone: the second run works on copies of the first run's
/// initial content.
class StageBlocks {
 public:
  /// `graph` is bound, and is copied; `blocks_in` as in RecomputeOptions. Throws InputError if the graph cannot be cut
  /// there; see split().
  StageBlocks(const graph::Graph& graph, const std::string& blocks_in);
  StageBlocks(StageBlocks&&) noexcept;
  ~StageBlocks();

  /// Like Program::run(). One that draws random numbers does so inside the caller's RandomTurn; its backward must not
  /// be inside one. The outputs may outlive this object, and their backward may run on another thread.
  void run(std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs);

 private:
  struct Piece;
  std::vector<Piece> pieces_;
  size_t boundaries_ = 0;  // between the pieces
};

}  // namespace plumbline::engine
