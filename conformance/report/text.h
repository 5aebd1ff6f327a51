// The report as text for a terminal or a log.
#pragma once

#include <string>
#include <vector>

#include "conformance/report/report.h"

namespace plumbline::conformance {

struct TextOptions {
  bool colour = false;  ///< ANSI colours: for terminals only (wants_colour)
  int columns = 100;    ///< wider matrices number their schedules and name them below
};

/// Cases as rows, schedules as columns, a symbol in each cell, and the legend with counts. Ends with a newline.
std::string matrix_text(const std::vector<Verdict>& verdicts, TextOptions options = {});

/// A table with a row for each measurement, and a line under it where ranks shared the `cores` of the machine (0:
/// unknown); empty when there is none. Ends with a newline.
std::string throughput_text(const std::vector<Throughput>& throughput, unsigned cores);

}  // namespace plumbline::conformance
