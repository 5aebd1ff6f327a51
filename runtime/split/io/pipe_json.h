// The JSON form of a pipe: its structure, and the graphs of some or all of its stages, without tensors.
//
//   {"format": "plumbline-pipe/1",
//    "stages": [{"graph": {...} or null, "inputs": [], "outputs": [0]}, ...],
//    "boundaries": [{"name": "v5", "value": {...}, "producer": 0, "output": 0,
//                    "consumers": [{"stage": 1, "input": 0}], "has_gradient": true}],
//    "shared": [{"name": "emb.weight", "stages": [0, 1]}]}
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "runtime/io/json_place.h"
#include "runtime/split/pipe.h"

namespace plumbline::split {

/// Writes the graphs of the stages selected by `with_graph`, null for the others.
nlohmann::json to_json(const Pipe& pipe, const std::function<bool(int stage)>& with_graph);

/// A stage without a graph gets an empty one. Throws InputError naming the place: another format or version, stages or
/// boundaries that do not exist.
Pipe pipe_from_json(const JsonPlace& place);

}  // namespace plumbline::split
