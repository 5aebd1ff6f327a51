// The report as one HTML page that needs nothing else: no network, no font, no script but its own.
//
// A table of cases and schedules, whose cells lead to the verdicts behind them; measurements with their timelines;
// where all of it was made. Without JavaScript it is that table and, below it, every verdict; with it the table filters
// (by text, status, truth, backend, ranks, transport; the filter stands in the address, so it can be sent to somebody)
// and a cell opens over the page. Statuses are told by symbols and words as well as by colours.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "conformance/report/report.h"

namespace plumbline::conformance {

struct PageReport {
  std::string label;  ///< what tells it from the others on the page, the name of its folder
  RunReport report;
};

/// The last part of a folder's path: what its report is called on a page.
std::string page_label(const std::filesystem::path& folder);

/// Several reports stand beside each other: a column for each under each schedule.
std::string report_page(const std::vector<PageReport>& reports);

}  // namespace plumbline::conformance
