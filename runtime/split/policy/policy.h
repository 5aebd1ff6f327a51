// Split policies: functions that decide where to cut a graph (SplitPolicy, in split_options.h).
//
// Related: PiPPy's split_on_size_threshold and split_into_equal_size (equal parameter bytes) and the partition of
// layers by measured cost in PyTorch's pipelining.
//
// They begin stages only at positions that legal_cuts() permits, and make no stage empty. Those that take a number of
// stages make exactly that many, as optimal_cuts() does for their cost: "equal" means that the costliest stage costs as
// little as possible, and that the stages are as even as this permits. They throw InputError when that many stages are
// impossible, with the largest possible number.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "runtime/split/cut/split_options.h"

namespace plumbline::split {

/// Every n-th call of modules of class `type` begins a stage: of the calls in the order of entry, counted from 0, those
/// numbered n, 2n, ... `type` is ModuleCall::type, or the end of it, and without "Impl": "Linear" matches
/// "torch::nn::LinearImpl" and "torch.nn.modules.linear.Linear". A call with no node before or after its beginning cuts
/// nothing. Throws InputError: n < 1; no such call (naming the classes that are called); a call whose beginning is not
/// legal.
SplitPolicy every_nth_call(std::string type, int n);

/// Equal bytes of parameters. One that is used several times, under one name or more, counts at its first use.
SplitPolicy equal_parameter_bytes(int stages);

/// Equal floating-point operations, forward and backward, from the captured sizes (runtime/flops/graph_flops.h).
SplitPolicy equal_estimated_flops(int stages);

/// Equal floating-point operations, forward and backward, counted on the calls that run on `inputs` (the graph's, as
/// captured).
SplitPolicy equal_measured_flops(int stages, std::vector<at::Tensor> inputs);

/// Equal time, forward and backward: the least of several runs on `inputs` (node_times.h). Two runs may give two
/// partitions; if ranks must agree, measure once and distribute the result.
SplitPolicy optimal_partition(int stages, std::vector<at::Tensor> inputs);

/// Equal sums of given costs, one for each node of the graph, finite and not negative.
SplitPolicy optimal_partition(int stages, std::vector<double> cost_by_node);

}  // namespace plumbline::split
