// Draws the report as one picture: the matrix of cases and schedules and, below it, the measured bubble of each
// measurement beside the theoretical one. Self-contained SVG (no script, no font, no network) on a white
// background, 900 pixels wide.
#pragma once

#include <string>

#include "conformance/report/report.h"

namespace plumbline::conformance {

/// Returns the text of the SVG file. Hovering over a cell shows the sentence of its verdict.
std::string matrix_svg(const RunReport& report);

}  // namespace plumbline::conformance
