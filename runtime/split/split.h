// split(): cuts a captured graph into a Pipe, at its pipe_split() markers and where the options say.
#pragma once

#include <string>
#include <vector>

#include "runtime/split/cut/split_options.h"
#include "runtime/split/pipe.h"

namespace plumbline::split {

/// Cuts `graph` at its markers and at `options.points` (or where `options.policy` says). A module entered several times
/// is cut at each entry. Markers with no call between them merge, so that no stage is empty. A stage that changes a
/// received value in place works on its own copy.
///
/// Throws InputError: points and a policy together; a module that was never entered (with the part of its name that
/// does not exist); a parameter in `multi_use_of` that the model does not have; an in-place change that another stage
/// would have to see; a buffer that one stage writes and an earlier one uses (also through a view). Later stages
/// receive the written value.
Pipe split(const graph::Graph& graph, const SplitOptions& options = {});

/// Evenly chooses stages-1 of `candidates` (names in program order) as BEGINNING split points.
/// Throws InputError when there are too few for that many stages, naming how many stages are possible.
std::vector<SplitPoint> choose_split_points(const std::vector<std::string>& candidates, int stages);

}  // namespace plumbline::split
