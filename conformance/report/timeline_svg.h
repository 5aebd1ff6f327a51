// Traces as one picture: a row for each rank, a block for each action, the bubble hatched; several traces above one
// another on a common axis of time, so that what was predicted stands beside what was measured. Self-contained SVG (no
// script, no font, no network), light, made to be read at 1200 pixels.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/schedule/simulation/simulation.h"

namespace plumbline::conformance {

struct TimelineSvgOptions {
  std::string title;
  std::string unit = "";  ///< of the traces' time, for the axis: "ms"
  /// Per rank of the first trace, drawn under it where it is given: the memory it holds over time.
  std::span<const std::vector<schedule::MemoryPoint>> memory = {};
};

/// Each trace begins at its first action. Hovering over a block shows the action and its times. Blocks carry the number
/// of their micro-batch where it fits; a rank's later stages are lighter, members of a group stand in one frame, and
/// sends, receives and waits are low. Throws InputError for more than 200 000 actions, which no viewer opens.
std::string timeline_svg(std::span<const schedule::Trace> traces, const TimelineSvgOptions& options);

}  // namespace plumbline::conformance
