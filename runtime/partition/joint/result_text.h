// Formats results of a joint graph for tables and pictures.
#pragma once

#include <string>
#include <string_view>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// Returns type and shape: "float32[32, 256]", "int s77", "(float32[4], float32[])", "nothing". A symbolic size prints
/// its expression and its hint: "float32[s77=12, 4]".
std::string result_text(const JointResult& out);

/// Returns the dtype of a tensor ("float32"), or "int", "float" or "bool" for a scalar; empty for other results. Valid
/// until the program ends.
std::string_view dtype_word(const JointResult& out);

}  // namespace plumbline::partition
