// Writes the report as one self-contained HTML page: no network, no font, no external script.
//
// The page holds a table of cases and schedules whose cells link to their verdicts, the measurements with their
// timelines, and the context of the run. Without JavaScript every verdict follows the table. With it the table can be
// filtered (by text, status, truth, backend, ranks, transport; the address holds the filter, so it can be shared) and a
// cell opens over the page. Statuses have symbols and words as well as colours.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "conformance/report/report.h"

namespace plumbline::conformance {

struct PageReport {
  std::string label;  ///< unique on the page: the name of its folder, or its path
  RunReport report;
};

/// The last part of a folder's path, the label of its report.
std::string page_label(const std::filesystem::path& folder);

/// Several reports are shown side by side: under each schedule, a column for each.
std::string report_page(const std::vector<PageReport>& reports);

}  // namespace plumbline::conformance
