// split(): cuts a captured graph into a Pipe, at its pipe_split() markers and at what the options say.
//
// After `pipeline()` of PyTorch's torch.distributed.pipelining (_IR.py).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/split/pipe.h"

namespace plumbline::split {

/// A stage border given by the qualified name of a module that forward entered through call().
struct SplitPoint {
  enum class Where { Beginning, End };
  std::string module;
  Where where = Where::Beginning;  ///< before the module's first node, or after its last
};

/// A function over the graph that says where to cut it: indices of the nodes before which a stage begins.
using SplitPolicy = std::function<std::vector<int32_t>(const graph::Graph&)>;

/// What becomes of a parameter that several stages use.
enum class MultiUse {
  Replicate,  ///< a copy a stage; the engine sums their gradients before the optimizer
  Transmit,   ///< it lives in the first stage that uses it and is sent along as a value; gradients come back
};

/// How a value gets to the stages that use it. Its gradient returns the same way, summed where it was used.
enum class Route {
  Direct,  ///< from the stage that makes it to every stage that uses it
  Chain,   ///< from each stage that uses it to the next one that does: as many messages as Direct, and gradients are
           ///< added up one by one, the last use first, which is the order of the uncut model
  Neighbours,  ///< from stage to stage, also through those that do not use it, for transports without other links
};

struct SplitOptions {
  std::vector<SplitPoint> points;
  /// The model outputs that the loss is computed from; decides which boundaries have a gradient.
  /// Unset: every output that requires one.
  std::optional<std::vector<int>> loss_outputs = {};
  /// Instead of `points`.
  SplitPolicy policy = {};
  MultiUse multi_use = MultiUse::Replicate;
  /// By parameter name (any of its names), where it is not as `multi_use` says.
  std::map<std::string, MultiUse> multi_use_of = {};
  Route route = Route::Direct;
  /// Whether the state of the random generator travels with a micro-batch, so that its stages draw what the uncut model
  /// would after one seeding.
  bool carry_random_state = false;
};

/// Cuts `graph` at its markers and at `options.points` (or where `options.policy` says). A module entered several times
/// is cut at each entry. Markers with no call between them merge, so that no stage is empty. A stage that changes in
/// place what an earlier stage made works on its own copy.
///
/// Throws InputError: points and a policy together; a module that was never entered (with the part of its name that
/// does not exist); a parameter in `multi_use_of` that the model does not have; an in-place change that another stage
/// would have to see; a buffer that one stage writes and an earlier one uses (also through a view). Later ones are sent
/// what the write left in it.
Pipe split(const graph::Graph& graph, const SplitOptions& options = {});

/// Evenly chooses stages-1 of `candidates` (names in program order) as BEGINNING split points.
/// Throws InputError when there are too few for that many stages, naming how many stages are possible.
std::vector<SplitPoint> choose_split_points(const std::vector<std::string>& candidates, int stages);

}  // namespace plumbline::split
