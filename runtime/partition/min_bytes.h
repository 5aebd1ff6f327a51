// The fewest saved bytes, proven: a minimum cut over storages instead of nodes.
//
// A storage counts once, however many of its views are saved; what belongs to a primal is free. What may be computed
// again is the policy's word alone (compute-intensive and random calls may not), without factors for distance or
// fusion.
#pragma once

#include "runtime/partition/min_cut.h"

namespace plumbline {

/// Throws InputError as min_cut() does.
CutResult min_bytes_cut(const CutInput& input);

}  // namespace plumbline
