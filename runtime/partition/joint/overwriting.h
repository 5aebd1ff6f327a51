// Calls that may write their result over an argument which nobody reads afterwards: our executor has them do so, and
// holds one value less while they run. They are those whose kernels read all of a row before they write it, and that
// stand where a backward holds the most: the gradient of a softmax is as large as the attention weights.
#pragma once

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// The position among the arguments of `node` of the one that its result has room in, form and all; -1: none. Whether
/// that value is dead by then, and its memory nobody else's, is for the caller to know. The operator that does it is
/// the overload "out" of the same name, whose last argument is where to write.
int overwritten_argument(const JointGraph& graph, const JointNode& node);

}  // namespace plumbline::partition
