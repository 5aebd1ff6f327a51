// Stores the tensors of graphs as data by key, and a JSON description of the properties that tensor files lack: shared
// tensors and shared memory, requires_grad, strides, additional element types, and tensors on the meta device (which
// have no data).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/io/json_place.h"
#include "runtime/io/tensor_file.h"

namespace plumbline::split {

/// Adds the tensors of `graphs` to `data`. The key of a parameter or a persistent buffer is its name; other keys are
/// "transient/NAME" and "constant/NAME"; a cond's branches add the prefix "branch/". Memory that several tensors share
/// is stored once, as bytes under "storage/" and the first tensor's key. A key already in use gets the suffix "#2".
/// Returns a list with an entry for each attribute in the order of for_each_attribute(), null for an unbound one.
/// Throws Error for a tensor that is not dense.
nlohmann::json store_tensors(const std::vector<const graph::Graph*>& graphs, TensorMap& data);

/// Binds the attributes of `graphs` to new tensors: leaves, on the CPU (or meta), with the sharing that they had.
/// `about` is the result of store_tensors(). Throws InputError with the place if `about` and `data` do not match the
/// graphs or each other.
void bind_stored_tensors(const JsonPlace& about, const TensorMap& data, const std::vector<graph::Graph*>& graphs);

}  // namespace plumbline::split
