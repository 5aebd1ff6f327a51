// Parses and formats the mode of a partition, with the measure and solver of its budget.
#pragma once

#include <string>

#include "runtime/partition/partition.h"

namespace plumbline::partition {

/// Parses "default", "min-cut", "aggressive", "bytes", "budget=0.25", "budget=0.25:peak" or "budget=0.25:greedy" (also
/// exact, hirschberg, knee-point, bytes). static_inputs stays empty. Throws InputError listing the modes for anything
/// else.
PartitionOptions parse_partition_mode(const std::string& text);
/// Returns the mode as parse_partition_mode() reads it; the default solver is omitted.
std::string to_string(const PartitionOptions& options);

}  // namespace plumbline::partition
