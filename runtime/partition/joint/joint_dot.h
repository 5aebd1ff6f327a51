// Draws a joint graph or one of its halves in the language of Graphviz; `dot -Tsvg` renders it.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/partition/partition.h"

namespace plumbline::partition {

enum class PartitionPart : uint8_t { Joint, Forward, Backward };

/// Returns a digraph. Calls are boxes, inputs ellipses, constants notes. The outputs of each half are one ellipse, with
/// their positions on the edges. Saved values are gold; nodes that run in both halves have a double border and, unless
/// saved, are light blue; nodes that run in neither half are dotted. In the joint graph, nodes that only the backward
/// runs are grey. Forward and Backward show the half's inputs, calls and outputs, in the half's order of calls.
std::string to_dot(const Partition& partition, PartitionPart part);

}  // namespace plumbline::partition
