// The table that `plumbline partition` prints.
#pragma once

#include <string>

#include "runtime/partition/budget/memory.h"
#include "runtime/partition/partition.h"

namespace plumbline::cli {

/// The saved values (bytes, new storage, name, type, origin), the totals, the number of calls in each part, and the
/// simulated memory.
std::string partition_table(const partition::Partition& partition, const partition::MemoryProfile& memory);

}  // namespace plumbline::cli
