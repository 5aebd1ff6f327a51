// Calls that may write their result over an argument that no later call reads, so that the executor holds one value
// less while they run. These are the backwards of softmax and log_softmax on the CPU: their kernels read a whole row
// before they write it, and they run when a backward holds the most (the gradient of a softmax is as large as the
// attention weights).
#pragma once

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// Returns the index in node.args of an argument that the result may overwrite, or -1. The argument has the result's
/// dtype, device, shape and strides, its storage has exactly the result's size, and it is neither an input nor a
/// constant. The caller must ensure that this call is the argument's last use and that no other live value shares its
/// memory. To overwrite, call the overload "out" of the same operator, whose last argument is the destination.
int overwritten_argument(const JointGraph& graph, const JointNode& node);

}  // namespace plumbline::partition
