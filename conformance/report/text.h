// Prints the report as text for a terminal or a log.
#pragma once

#include <string>
#include <vector>

#include "conformance/report/report.h"

namespace plumbline::conformance {

struct TextOptions {
  bool colour = false;  ///< ANSI colours: for terminals only (wants_colour)
  int columns = 100;    ///< a wider matrix numbers its schedules and names them below
};

/// Cases as rows, schedules as columns, a symbol in each cell, and the legend with counts. Ends with a newline.
std::string matrix_text(const std::vector<Verdict>& verdicts, TextOptions options = {});

/// A table with a row for each measurement, and a line below it if there are more ranks than `cores` (0: unknown). Ends
/// with a newline; empty without measurements.
std::string throughput_text(const std::vector<Throughput>& throughput, unsigned cores);

}  // namespace plumbline::conformance
