// Prints the report as text for a terminal or a log.
#pragma once

#include <string>
#include <vector>

#include "conformance/report/report.h"

namespace plumbline::conformance {

struct TextOptions {
  bool colour = false;  ///< ANSI colours, for terminals only
  int columns = 100;    ///< if the matrix is wider, its columns are numbered and the schedules named below
};

/// The matrix with cases as rows, schedules as columns and a status symbol in each cell, then a legend with the number
/// of verdicts by status. Ends with a newline.
std::string matrix_text(const std::vector<Verdict>& verdicts, TextOptions options = {});

/// A table with one row for each measurement, and a remark below it if a measurement has more ranks than `cores` (0:
/// unknown). Ends with a newline; empty without measurements.
std::string throughput_text(const std::vector<Throughput>& throughput, unsigned cores);

}  // namespace plumbline::conformance
