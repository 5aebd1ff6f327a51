// Draws traces as one picture: a row for each rank, a block for each action, the bubble hatched. Several traces share
// one time axis and are stacked, so that prediction and measurement can be compared. Self-contained SVG (no script, no
// font, no network), light, 1200 pixels wide.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/schedule/simulation/simulation.h"

namespace plumbline::conformance {

struct TimelineSvgOptions {
  std::string title;
  std::string unit = "";  ///< of the traces' time, for the axis: "ms"
  /// The memory over time of each rank of the first trace, drawn below it; empty: not drawn.
  std::span<const std::vector<schedule::MemoryPoint>> memory = {};
};

/// Each trace begins at its first action. Hovering over a block shows the action and its times. A block shows its
/// micro-batch if the number fits. A rank's later stages are lighter, a frame surrounds a group, and sends, receives
/// and waits are drawn low. Throws InputError for more than 200 000 actions, which no viewer opens.
std::string timeline_svg(std::span<const schedule::Trace> traces, const TimelineSvgOptions& options);

}  // namespace plumbline::conformance
