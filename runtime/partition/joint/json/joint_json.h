// Reads and writes the JSON form of one joint graph: a member of "graphs" in plumbline-joint-graph/1
// (joint_graph_file.h).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

#include "runtime/io/json_place.h"
#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// Returns the graph as JSON. The order of keyword arguments is lost: reading returns them sorted by name.
nlohmann::json to_json(const JointGraph& graph);
/// Reads and verifies a graph. Throws InputError with the place and the expected value if the JSON or the graph
/// (verify()) is malformed. `place` is the prefix of every error: the file, or a place in the file.
JointGraph joint_graph_from_json(const nlohmann::json& json, const std::string& place);
JointGraph joint_graph_from_json(const JsonPlace& place);

}  // namespace plumbline::partition
