// The options of split(): the cuts, and the way in which values and shared parameters reach the stages that use them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace plumbline::graph {
struct Graph;  // runtime/graph/graph.h, which needs LibTorch
}

namespace plumbline::split {

/// A cut at every entry of a module that forward entered through plumbline::call().
struct SplitPoint {
  enum class Where { Beginning, End };
  std::string module;              ///< qualified name, such as "blocks.3"
  Where where = Where::Beginning;  ///< before the module's first node, or after its last
};

/// A function that cuts a graph: it returns the indices (0 to the number of nodes, in any order) of the nodes before
/// which a stage begins. Exceptions reach the caller of split().
using SplitPolicy = std::function<std::vector<int32_t>(const graph::Graph&)>;

/// The treatment of a parameter that several stages use.
enum class MultiUse {
  Replicate,  ///< one copy per stage; the engine sums their gradients before the optimizer
  Transmit,   ///< the first stage that uses the parameter owns it and sends it as a value; gradients return
};

/// The path of a value to the stages that use it. The gradient takes the same path back: each stage that sent the value
/// sums the gradients that it gets back and those of its own uses.
enum class Route {
  Direct,      ///< the producer sends the value to every stage that uses it
  Chain,       ///< each stage that uses the value sends it to the next such stage: as many messages as Direct, and
               ///< gradients are summed one by one, the last use first, which is the order of the uncut model
  Neighbours,  ///< each stage sends the value to the next stage, also through stages that do not use it, for transports
               ///< without other links
};

struct SplitOptions {
  std::vector<SplitPoint> points = {};  ///< in any order, or with exits_early in that of the forward
  /// Indices of the model outputs from which the loss is computed. They determine the boundaries that have a gradient.
  /// Unset: every output that requires a gradient.
  std::optional<std::vector<int>> loss_outputs = {};
  /// Indices of the model outputs that are losses of the stages that make them (Pipe::local_losses): scalars that stay
  /// there, and from which the backward of that stage begins as well.
  std::vector<int> local_losses = {};
  /// Names (any of them) of parameters that the loss function reads, and no forward but that of the last stage: they
  /// belong to the last stage. (Any other unused parameter belongs to the stage of the one registered before it.)
  std::vector<std::string> loss_parameters = {};
  /// Replaces `points`, which must then be empty.
  SplitPolicy policy = {};
  MultiUse multi_use = MultiUse::Replicate;
  /// Exceptions to `multi_use`, by any name of the parameter.
  std::map<std::string, MultiUse> multi_use_of = {};
  Route route = Route::Direct;
  /// Whether each micro-batch carries the state of the CPU random generator from stage to stage, so that the stages
  /// draw the same numbers as the uncut model after one seeding.
  bool carry_random_state = false;
  /// Whether forward may return early: points at modules that it did not enter are left out if all points after them
  /// are, and the pipe ends with the stage in which forward returned.
  bool exits_early = false;
};

}  // namespace plumbline::split
