// What `plumbline partition` prints of a partition for people.
#pragma once

#include <string>

#include "runtime/partition/budget/memory.h"
#include "runtime/partition/partition.h"

namespace plumbline::cli {

/// What is saved (bytes, the new storage that it holds, value, what makes it), the totals, how many calls run where,
/// and the simulated memory.
std::string partition_table(const partition::Partition& partition, const partition::MemoryProfile& memory);

}  // namespace plumbline::cli
