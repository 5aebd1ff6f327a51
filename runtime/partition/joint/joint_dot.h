// Pictures of a joint graph and of its parts, in the language of Graphviz: `dot -Tsvg` draws them.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/partition/partition.h"

namespace plumbline::partition {

enum class PartitionPart : uint8_t { Joint, Forward, Backward };

/// Calls are boxes, inputs ellipses, constants notes, what is returned one more ellipse for the forward and one for the
/// backward, with the positions on the edges. Saved values are gold, what runs in both is light blue with a double
/// border, what runs in neither is dotted; in the joint picture the backward's calls are grey. A part shows what it
/// takes, runs and returns, in its own order of calls.
std::string to_dot(const Partition& partition, PartitionPart part);

}  // namespace plumbline::partition
