// The report as one picture: the matrix of cases and schedules, and under it, for each measurement, the bubble beside
// what theory allows. Self-contained SVG (no script, no font, no network), light, made to be read at 900 pixels.
#pragma once

#include <string>

#include "conformance/report/report.h"

namespace plumbline::conformance {

/// The text of the SVG file. Hovering over a cell shows its sentence.
std::string matrix_svg(const RunReport& report);

}  // namespace plumbline::conformance
