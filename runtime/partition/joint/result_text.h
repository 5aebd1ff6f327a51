// Values of a joint graph in words, for tables and pictures.
#pragma once

#include <string>
#include <string_view>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// "float32[32, 256]", "int s77", "(float32[4], float32[])", "nothing". Sizes that are expressions stand as such, with
/// the value they had: "float32[s77=12, 4]".
std::string result_text(const JointResult& out);

/// "float32" of a tensor, "int", "float" or "bool" of a scalar; empty for what has no dtype.
std::string_view dtype_word(const JointResult& out);

}  // namespace plumbline::partition
