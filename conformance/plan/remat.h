// Whether the stages of a case can be partitioned, known before any of them runs.
#pragma once

#include <cstdint>
#include <string>

#include "reference/case.h"
#include "runtime/engine/stage/partitioned_stage.h"

namespace plumbline::conformance {

/// Why the case, cut into so many stages, cannot run with these options, in one line; empty when it can. Traces and
/// partitions every stage for each shape of micro-batch.
std::string why_not_partitioned(const reference::Case& c, int stages, uint64_t seed,
                                const engine::RematOptions& options);

}  // namespace plumbline::conformance
