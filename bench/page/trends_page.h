// The history of speed as one self-contained HTML page: no network, no script, no font; light or dark as the reader
// prefers. It has the figures that changed, the trend of each figure as a line of its medians with the middle half of
// the samples around them, and the coverage of reports of `plumbline run`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/history/trend.h"
#include "conformance/report/report.h"

namespace plumbline::bench {

/// The contents of trends.html, with {{placeholders}}, and of trends.css.
extern const std::string_view trends_html, trends_css;

/// A report of `plumbline run` and its label on the page.
struct Coverage {
  std::string label;
  conformance::RunReport report;
};

/// Returns the text of the page. `trends` are those of `history`, which must not be empty.
std::string trends_page(std::span<const BenchRun> history, const std::vector<Trend>& trends,
                        const std::vector<Coverage>& coverage);

/// The line of one figure as an <svg> element. Hollow points were measured while the machine was not steady; a dashed
/// line stands where a new level begins.
std::string trend_svg(std::span<const BenchRun> history, const Trend& trend);

}  // namespace plumbline::bench
