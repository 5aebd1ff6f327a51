// The table that `plumbline partition` prints.
#pragma once

#include <string>

#include "runtime/partition/budget/memory.h"
#include "runtime/partition/partition.h"

namespace plumbline::cli {

/// Returns a text of several lines: a row for each saved value, the totals, the number of nodes (calls, getitems and
/// constants) in each half and in both, and the simulated memory in bytes. A row has the value's bytes, its "new
/// storage" (bytes of storage that no input, constant or earlier value holds already, or the holder), name, type and
/// origin. `memory` is simulate_memory(partition).
std::string partition_table(const partition::Partition& partition, const partition::MemoryProfile& memory);

}  // namespace plumbline::cli
