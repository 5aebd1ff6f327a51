// Draws traces as one picture: a row for each rank, a block for each action, and the bubble hatched. Several traces are
// stacked on one time axis, so that prediction and measurement can be compared. Self-contained SVG (no script, no font,
// no network) on a white background, 1200 pixels wide.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/schedule/simulation/simulation.h"

namespace plumbline::conformance {

struct TimelineSvgOptions {
  std::string title;
  std::string unit = "";  ///< the traces' unit of time, for the axis: "ms"
  /// The memory of each rank of the first trace over time, drawn below that trace; empty: not drawn.
  std::span<const std::vector<schedule::MemoryPoint>> memory = {};
};

/// Returns the text of the SVG file. The time axis of each trace begins at its first action. Hovering over a block
/// shows the action and its times; the block shows its micro-batch if the number fits. The later stages of a rank are
/// lighter, a frame surrounds an overlapped group, and sends, receives and waits have low blocks. Throws InputError for
/// more than 200 000 actions, which viewers cannot open.
std::string timeline_svg(std::span<const schedule::Trace> traces, const TimelineSvgOptions& options);

}  // namespace plumbline::conformance
