// Writes one or several reports as one self-contained HTML page: no network, no font, no external script.
//
// The page contains a table of cases and schedules whose cells link to their verdicts, the measurements with their
// timelines, and the context of the run. Without JavaScript every verdict follows the table. With JavaScript the table
// can be filtered (by text, status, truth, backend, ranks and transport; the address contains the filter, so that it
// can be shared), and a cell opens over the page. Statuses have symbols and words as well as colours.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "conformance/report/report.h"

namespace plumbline::conformance {

struct PageReport {
  std::string label;  ///< unique on the page: the name of the report's folder, or its path
  RunReport report;
  std::filesystem::path folder = {};  ///< the report's, relative to the page: links to logs lead there
};

/// The default label of the report in `folder`: the last part of its absolute path.
std::string page_label(const std::filesystem::path& folder);

/// Returns the text of the page. With several reports, each schedule has one column for each report.
std::string report_page(const std::vector<PageReport>& reports);

}  // namespace plumbline::conformance
