// split(): cuts a captured graph into a Pipe, at its pipe_split() markers and at the cuts that the options select.
#pragma once

#include <string>
#include <vector>

#include "runtime/split/cut/split_options.h"
#include "runtime/split/pipe.h"

namespace plumbline::split {

/// Cuts `graph` at its markers and at `options.points` or the cuts of `options.policy`. A module entered several times
/// is cut at each entry. Cuts with no call between them merge, so that no stage is empty. A stage that changes a
/// received value in place changes a copy. A reshape() (or flatten(), contiguous(), ...) whose result or argument it
/// writes returns a view or a copy as in the captured run (cut/view_or_copy.h). Stages after the one that writes a
/// buffer receive the written value.
///
/// Throws InputError for points and a policy together; a module that was never entered (naming the part of the name
/// that does not exist); a node index of the policy or a loss output out of range; a local loss that is no
/// floating-point scalar of a stage; a name in `multi_use_of` or `loss_parameters` that is no parameter of the
/// model; a parameter in `loss_parameters` that other stages have and the last one does not; an in-place change that
/// another stage would have to see; and a buffer that one stage writes and an earlier one uses (also through a view).
/// Exceptions of the policy reach the caller.
Pipe split(const graph::Graph& graph, const SplitOptions& options = {});

/// Selects stages - 1 of `candidates` (module names in program order), evenly spaced, as split points at the module's
/// beginning. Throws InputError, naming the possible numbers of stages, for fewer than 1 stage or too few candidates.
std::vector<SplitPoint> choose_split_points(const std::vector<std::string>& candidates, int stages);

}  // namespace plumbline::split
