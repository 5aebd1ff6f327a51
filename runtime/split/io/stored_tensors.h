// The tensors of graphs as data by key, and as JSON the facts that data in files lacks: shared tensors and shared
// memory, requires_grad, strides, element types that tensor files lack, and tensors on the meta device (no data).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/io/json_place.h"
#include "runtime/io/tensor_file.h"

namespace plumbline::split {

/// Adds the tensors of `graphs` to `data`: a parameter and a buffer of the state dict under its name, others as
/// "transient/NAME" and "constant/NAME", those of a cond's branches after "branch/"; a key in use gets "#2". Returns an
/// entry for each attribute in the order of for_each_attribute (null for an unbound one). Throws Error for a tensor
/// that is not dense.
nlohmann::json store_tensors(const std::vector<const graph::Graph*>& graphs, TensorMap& data);

/// Binds the attributes of `graphs` to the tensors of store_tensors: on the CPU (or meta), shared as they were, leaves.
/// Throws InputError naming the place when `about` and `data` do not match the graphs or each other.
void bind_stored_tensors(const JsonPlace& about, const TensorMap& data, const std::vector<graph::Graph*>& graphs);

}  // namespace plumbline::split
