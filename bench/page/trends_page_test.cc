// The page is one file that needs nothing else, and shows what the trends say.
#include "bench/page/trends_page.h"

#include <gtest/gtest.h>

#include <pugixml.hpp>
#include <regex>

#include "bench/history/testing/sample_runs.h"
#include "conformance/report/testing/sample_report.h"

namespace plumbline::bench {
namespace {

using testing::NoisyTimes;
using testing::sample_run;

constexpr int kNights = 12, kPlanted = 8;

/// A regression of <step> from the run kPlanted on, a counter that stays, and a last run on a busy machine.
std::vector<BenchRun> planted_history() {
  NoisyTimes noise(1);
  std::vector<BenchRun> runs;
  for (int run = 0; run < kNights; ++run)
    runs.push_back(
        sample_run("commit" + std::to_string(run),
                   {testing::timed(noise.several(10, run < kPlanted ? 1 : 1.2), "<step>"), testing::counted({17})}));
  return runs;
}

/// The page as XML, for XPath: open HTML elements are closed, the style is removed.
pugi::xml_document parsed(std::string page) {
  page = page.substr(page.find("<html"));
  const size_t begin = page.find("<style>"), end = page.find("</style>");
  page.erase(begin, end + 8 - begin);
  page = std::regex_replace(page, std::regex("<(meta|link)([^>]*)>"), "<$1$2/>");
  pugi::xml_document document;
  const pugi::xml_parse_result result = document.load_string(page.c_str());
  EXPECT_TRUE(result) << result.description() << " at " << page.substr(static_cast<size_t>(result.offset), 80);
  return document;
}

std::string page_of(const std::vector<BenchRun>& runs, const std::vector<Coverage>& coverage = {}) {
  return trends_page(runs, trends(runs, {}, 7), coverage);
}

TEST(TrendsPage, ShowsWhatChangedAndSinceWhen) {
  const pugi::xml_document page = parsed(page_of(planted_history()));
  EXPECT_STREQ(page.select_node("//title").node().child_value(), "plumbline speed: 1 regressed");
  const pugi::xml_node changed = page.select_node("//section[h2='Changed']").node();
  EXPECT_EQ(changed.select_nodes(".//tbody/tr").size(), 1u);
  EXPECT_STREQ(changed.select_node(".//tbody//th").node().child_value(), "throughput/1f1b <step>");
  EXPECT_EQ(changed.select_nodes(".//td[.='commit8, 2026-11-25']").size(), 1u);
  EXPECT_EQ(page.select_nodes("//section[h2='Figures']//tbody/tr").size(), 2u);
}

TEST(TrendsPage, ALineHasAPointForEachRunAndAMarkForEachChange) {
  std::vector<BenchRun> runs = planted_history();
  runs.back().probe = {0.009};
  const pugi::xml_document page = parsed(page_of(runs));
  const pugi::xml_node line = page.select_node("//section[h2='Figures']//svg").node();
  EXPECT_EQ(line.select_nodes("circle").size(), static_cast<size_t>(kNights));
  EXPECT_EQ(line.select_nodes("circle[@class='unsteady']").size(), 1u);
  EXPECT_EQ(line.select_nodes("line").size(), 1u);
  EXPECT_STREQ(line.child("line").attribute("x1").value(),
               line.select_nodes("circle")[kPlanted].node().attribute("cx").value());
  EXPECT_GT(line.select_nodes("circle")[0].node().attribute("cy").as_double(),
            line.select_nodes("circle")[kPlanted].node().attribute("cy").as_double());  // slower is higher
}

TEST(TrendsPage, CoverageCountsWhatReportsSay) {
  conformance::RunReport report;
  using conformance::Status;
  for (const auto& [id, schedule, status] : {std::tuple("a", "gpipe", Status::Pass),
                                             {"a", "1f1b", Status::Pass},
                                             {"b", "1f1b", Status::XFail},
                                             {"c", "zb-v", Status::Fail},
                                             {"d", "zb-v", Status::Unsupported}})
    report.verdicts.push_back(conformance::sample_verdict(id, schedule, status));
  const pugi::xml_document page = parsed(page_of(planted_history(), {{"nightly", report}}));
  std::vector<std::string> cells;
  for (const pugi::xpath_node& cell : page.select_nodes("//section[h2='Coverage']//tbody/tr/td"))
    cells.push_back(cell.node().text().get()[0] != 0 ? cell.node().text().get()
                                                     : cell.node().first_child().text().get());
  EXPECT_EQ(cells, (std::vector<std::string>{"runtime ", "2", "2", "2", "1", "1", "1"}));
}

TEST(TrendsPage, NeedsNothingFromOutside) {
  const std::string page = page_of(planted_history());
  for (const char* word : {"http", "src=", "@import", "url(", "<script", "{{"})
    EXPECT_EQ(page.find(word), std::string::npos) << word;
}

}  // namespace
}  // namespace plumbline::bench
