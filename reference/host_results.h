// Converts a run's results to the torch-free tensors that are written to files and compared.
#pragma once

#include "reference/results.h"
#include "runtime/graph/host_tensors.h"

namespace plumbline::reference {

TensorMap to_host(const Results& results);

}  // namespace plumbline::reference
