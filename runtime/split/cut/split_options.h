// Where a graph is cut, and how shared values and parameters reach the stages that use them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::split {

/// A stage border, given by the qualified name of a module that forward entered through call().
struct SplitPoint {
  enum class Where { Beginning, End };
  std::string module;
  Where where = Where::Beginning;  ///< before the module's first node, or after its last
};

/// A function that decides where to cut a graph: it returns the indices of the nodes before which a stage begins.
using SplitPolicy = std::function<std::vector<int32_t>(const graph::Graph&)>;

/// The treatment of a parameter that several stages use.
enum class MultiUse {
  Replicate,  ///< one copy per stage; the engine sums their gradients before the optimizer
  Transmit,   ///< it lives in the first stage that uses it and is sent along as a value; gradients come back
};

/// How a value reaches the stages that use it. Its gradient returns the same way, summed in the stages that used it.
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
  /// In place of `points`.
  SplitPolicy policy = {};
  MultiUse multi_use = MultiUse::Replicate;
  /// Exceptions to `multi_use`, by parameter name (any of its names).
  std::map<std::string, MultiUse> multi_use_of = {};
  Route route = Route::Direct;
  /// Whether the state of the random generator travels with a micro-batch, so that its stages draw the same numbers as
  /// the uncut model after one seeding.
  bool carry_random_state = false;
};

}  // namespace plumbline::split
