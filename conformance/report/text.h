// Prints the report as text for a terminal or a log.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "conformance/report/report.h"

namespace plumbline::conformance {

struct TextOptions {
  bool colour = false;         ///< ANSI colours, for terminals only
  int columns = 100;           ///< if the matrix is wider, its columns are numbered and the schedules named below
  bool only_failures = false;  ///< leave out the cases without a failure
};

/// The matrix with cases as rows, schedules as columns and a status symbol in each cell. Ends with a newline; empty
/// without a row.
std::string matrix_text(const std::vector<Verdict>& verdicts, TextOptions options = {});

/// The number of verdicts by status in one line, "+ pass 40   X fail 1". Ends with a newline.
std::string summary_text(const std::vector<Verdict>& verdicts, bool colour = false);

/// The verdicts that say neither pass nor fail (unsupported, skipped, not-run), by status and by reason, with the
/// number of runs; the most frequent reasons first, at most ten for each status. Ends with a newline; empty without
/// any.
std::string reasons_text(const std::vector<Verdict>& verdicts);

/// The sentence of a failure, the log of its backend, and on a second line the command that repeats it. `report`: the
/// report folder. No newline at the end.
std::string failure_text(const Verdict& verdict, const std::filesystem::path& report);

/// A table with one row for each measurement, and a remark below it if a measurement has more ranks than `cores` (0:
/// unknown). Ends with a newline; empty without measurements.
std::string throughput_text(const std::vector<Throughput>& throughput, unsigned cores);

}  // namespace plumbline::conformance
