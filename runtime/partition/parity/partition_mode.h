// Parses and prints the modes of a partition and the solvers of its budget.
#pragma once

#include <string>

#include "runtime/partition/partition.h"

namespace plumbline::partition {

/// "default", "min-cut", "aggressive", "bytes", "budget=0.25", "budget=0.25:peak", "budget=0.25:greedy" (also exact,
/// hirschberg, knee-point, bytes). Throws InputError for anything else.
PartitionOptions parse_partition_mode(const std::string& text);
std::string to_string(const PartitionOptions& options);

}  // namespace plumbline::partition
