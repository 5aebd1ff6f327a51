// split(): cuts a captured graph into a Pipe, at its pipe_split() markers and at modules given by name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/split/pipe.h"

namespace plumbline {

/// A stage border given by the qualified name of a module that forward entered through call().
struct SplitPoint {
  enum class Where { Beginning, End };
  std::string module;
  Where where = Where::Beginning;  ///< before the module's first node, or after its last
};

struct SplitOptions {
  std::vector<SplitPoint> points;
  /// The model outputs that the loss is computed from; decides which boundaries have a gradient.
  /// Unset: every output that requires one.
  std::optional<std::vector<int>> loss_outputs;
};

/// Cuts `graph` at its markers and at `options.points`. A module entered several times is cut at each entry. Markers
/// with no call between them merge, so that no stage is empty.
///
/// Throws InputError: a module that was never entered (named with those that were); a call that changes in place what
/// an earlier stage made; a buffer that one stage writes and another uses (also through a view, or what the write left
/// in it).
Pipe split(const Graph& graph, const SplitOptions& options = {});

/// Evenly chooses stages-1 of `candidates` (names in program order) as BEGINNING split points.
/// Throws InputError when there are too few for that many stages, naming how many stages are possible.
std::vector<SplitPoint> choose_split_points(const std::vector<std::string>& candidates, int stages);

}  // namespace plumbline
