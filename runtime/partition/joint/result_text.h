// Values of a joint graph in words, for tables and pictures.
#pragma once

#include <string>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// "float32[32, 256]", "int s77", "(float32[4], float32[])", "nothing". Sizes that are expressions stand as such, with
/// the value they had: "float32[s77=12, 4]".
std::string result_text(const JointResult& out);

}  // namespace plumbline::partition
