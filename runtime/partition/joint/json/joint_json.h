// The JSON form of a joint graph, read and written: the "graph" of plumbline-joint-graph/1 (joint_graph_file.h).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

#include "runtime/io/json_place.h"
#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// The "graph" of the form. Keyword arguments have no order in JSON: read, they stand by name.
nlohmann::json to_json(const JointGraph& graph);
/// The graph is verified. `place` opens error messages: the file, or where in it.
JointGraph joint_graph_from_json(const nlohmann::json& json, const std::string& place);
JointGraph joint_graph_from_json(const JsonPlace& place);

}  // namespace plumbline::partition
