// The cores on which this process may run (taskset, cgroup cpusets, a launcher's binding).
#pragma once

#include <vector>

namespace plumbline::transport {

/// Ascending numbers of the host's cores. Empty if they cannot be told.
std::vector<int> own_cores();

}  // namespace plumbline::transport
