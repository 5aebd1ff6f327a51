// The JSON form of a pipe: its structure, and the graphs of some or all of its stages, without tensors.
//
//   {"format": "plumbline-pipe/1",
//    "stages": [{"graph": {...} or null, "inputs": [], "outputs": [0]}, ...],
//    "boundaries": [{"name": "v5", "value": {...}, "producer": 0, "output": 0,
//                    "consumers": [{"stage": 1, "input": 0}], "has_gradient": true}],
//    "shared": [{"name": "emb.weight", "stages": [0, 1]}],
//    "local_losses": [{"stage": 1, "output": 2, "model_output": 1}],   (left out if there are none)
//    "ends_early": true}                                               (left out if false)
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "runtime/io/json_place.h"
#include "runtime/split/pipe.h"

namespace plumbline::split {

/// Returns the JSON of a pipe, with the graphs of the stages for which `with_graph` returns true, and null for the
/// others.
nlohmann::json to_json(const Pipe& pipe, const std::function<bool(int stage)>& with_graph);

/// Reads a pipe; a stage whose graph is null has an empty one, and no tensor is bound. Throws InputError with the place
/// for malformed JSON, another format or version, and an index of a stage or boundary that does not exist. Does not
/// check Boundary::output and Consumer::input against the graphs.
Pipe pipe_from_json(const JsonPlace& place);

}  // namespace plumbline::split
