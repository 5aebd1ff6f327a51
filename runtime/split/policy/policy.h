// Split policies: functions that cut a graph (SplitPolicy, in split_options.h).
//
// Related: PiPPy's split_on_size_threshold and split_into_equal_size (equal parameter bytes) and the partition of
// layers by measured cost in PyTorch's pipelining.
//
// All policies begin stages only at positions that legal_cuts() permits, and make no stage empty. A policy with a
// number of stages makes exactly that many by optimal_cuts(): "equal" means that the costliest stage costs as little as
// possible, and that the stages are as even as this permits. When called, such a policy throws InputError, with the
// largest possible number, if that many stages are impossible.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "runtime/split/cut/split_options.h"

namespace plumbline::split {

/// Every n-th call of a module of class `type` begins a stage: of these calls in the order of entry, counted from 0,
/// those numbered n, 2n, ... `type` is ModuleCall::type or its last parts, where a final "Impl" may be omitted:
/// "Linear" matches "torch::nn::LinearImpl" and "torch.nn.modules.linear.Linear". A module call with no node before or
/// after its beginning cuts nothing. When called, the policy throws InputError if n < 1, if no such module is called
/// (naming the classes that are), or if the beginning of a selected call is not a legal cut.
SplitPolicy every_nth_call(std::string type, int n);

/// Equal bytes of parameters. A parameter that is used several times, under one name or several, counts at its first
/// use.
SplitPolicy equal_parameter_bytes(int stages);

/// Equal floating-point operations, forward and backward, from the captured sizes (runtime/flops/graph_flops.h).
SplitPolicy equal_estimated_flops(int stages);

/// Equal floating-point operations, forward and backward, counted by running the graph on `inputs`
/// (measure/node_flops.h), which must have the captured dtypes and shapes.
SplitPolicy equal_measured_flops(int stages, std::vector<at::Tensor> inputs);

/// Equal time, forward and backward: the least of several runs on `inputs` (measure/node_times.h). The result may
/// differ from one call to the next; if ranks must agree, measure once and distribute the result.
SplitPolicy optimal_partition(int stages, std::vector<at::Tensor> inputs);

}  // namespace plumbline::split
