// Converts a run's results to torch-free tensors, which are written to files and compared.
#pragma once

#include "reference/results.h"
#include "runtime/graph/host_tensors.h"

namespace plumbline::reference {

/// Copies every tensor, under the same key. Throws Error as graph::to_host() does.
TensorMap to_host(const Results& results);

}  // namespace plumbline::reference
