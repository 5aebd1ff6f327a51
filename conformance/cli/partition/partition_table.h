// The table that `plumbline partition` prints.
#pragma once

#include <string>

#include "runtime/partition/budget/memory.h"
#include "runtime/partition/partition.h"

namespace plumbline::cli {

/// A text of several lines: the saved values (bytes, new storage, name, type, origin), their totals, the number of
/// nodes (calls, getitems and constants) in each half and in both, and the simulated memory. `memory` is
/// simulate_memory(partition).
std::string partition_table(const partition::Partition& partition, const partition::MemoryProfile& memory);

}  // namespace plumbline::cli
