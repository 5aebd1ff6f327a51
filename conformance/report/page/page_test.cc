#include "conformance/report/page/page.h"

#include <gtest/gtest.h>

#include <pugixml.hpp>
#include <regex>

#include "conformance/report/testing/sample_report.h"

namespace plumbline::conformance {
namespace {

/// The page as XML, for XPath: open HTML elements are closed, and style and script (tested in a browser) are removed.
pugi::xml_document parsed(std::string page) {
  page = page.substr(page.find("<html"));
  for (const char* name : {"style", "script"}) {
    const std::string open = "<" + std::string(name) + ">", close = "</" + std::string(name) + ">";
    const size_t begin = page.find(open), end = page.find(close);
    EXPECT_NE(begin, std::string::npos);
    page.erase(begin, end + close.size() - begin);
  }
  page = std::regex_replace(page, std::regex("<(meta|link|input)([^>]*)>"), "<$1$2/>");
  page = std::regex_replace(page, std::regex(" (hidden|open)(?=[ >])"), " $1=\"\"");
  pugi::xml_document document;
  const pugi::xml_parse_result result = document.load_string(page.c_str());
  EXPECT_TRUE(result) << result.description() << ": " << page.substr(result.offset, 80);
  return document;
}

size_t count(const pugi::xml_document& document, const std::string& path) {
  return document.select_nodes(path.c_str()).size();
}

std::string text(const pugi::xml_document& document, const std::string& path) {
  std::string all;
  for (const auto& node : document.select_nodes((path + "//text()").c_str())) all += node.node().value();
  return all;
}

TEST(Page, HasACellAndAVerdictForEverythingAndLinksThem) {
  const RunReport report = sample_report();
  const pugi::xml_document page = parsed(report_page({{"here", report}}));
  EXPECT_EQ(count(page, "//table[@id='matrix']/tbody/tr"), 3u);
  EXPECT_EQ(count(page, "//table[@id='matrix']/tbody//a"), report.verdicts.size());
  EXPECT_EQ(count(page, "//section[@id='details']/article"), report.verdicts.size());
  for (const auto& link : page.select_nodes("//table[@id='matrix']/tbody//a")) {
    const std::string target = std::string(link.node().attribute("href").value()).substr(1);
    const auto article = page.select_node(("//article[@id='" + target + "']").c_str()).node();
    ASSERT_TRUE(article) << target;
    EXPECT_EQ(link.node().attribute("class").value(), std::string(article.attribute("data-status").value()));
    EXPECT_EQ(link.node().attribute("aria-label").value(), std::string(article.attribute("data-case").value()) + ", " +
                                                               article.attribute("data-schedule").value() + ": " +
                                                               article.attribute("data-status").value());
  }
  // Each status has a distinct symbol, and every column and row a heading.
  std::set<std::string> symbols;
  for (const Status status : all_statuses)
    symbols.insert(text(page, "//ul[@class='counts']/li[@class='" + std::string(status_name(status)) + "']/span"));
  EXPECT_EQ(symbols.size(), std::size(all_statuses));
  EXPECT_EQ(count(page, "//table[@id='matrix']/thead//th[@scope='col']"), 2u + 12u);
  EXPECT_EQ(count(page, "//table[@id='matrix']/tbody/tr/th[@scope='row']"), 3u);
}

TEST(Page, AFailureShowsItsNeighbourhoodAndTheRestOfIt) {
  const pugi::xml_document page = parsed(report_page({{"here", sample_report()}}));
  const std::string article = "//article[@data-case='exact-<mlp>']";
  EXPECT_EQ(text(page, article + "/p[@class='repro']/code"), "plumbline run --case exact-<mlp> --schedule 1f1b");
  EXPECT_EQ(count(page, article + "//table/tbody/tr"), 9u);
  EXPECT_EQ(text(page, article + "//table/tbody/tr[1]/th"), "[0,1]");
  EXPECT_EQ(text(page, article + "//table/tbody/tr[@class='differs']/th"), "[0,5]");
  EXPECT_EQ(text(page, article + "//table/tbody/tr[@class='differs']/td[2]"), "inf");
  EXPECT_NE(text(page, article + "/details").find("`w` f64[] is missing"), std::string::npos);
  EXPECT_EQ(text(page, article + "/p[@class='log']/a"), sample_failure().log);
  const std::string bounded = "//article[@data-case='bounded-lm']";
  EXPECT_EQ(text(page, bounded + "//table/tbody/tr[2]/td[3]"), "2");
  EXPECT_EQ(count(page, bounded + "//meter"), 2u);
  EXPECT_NE(text(page, "//article[@data-status='xpass']").find("w.toml:3"), std::string::npos);
}

TEST(Page, LinksToLogsLeadToTheFolderOfTheirReport) {
  for (const auto& [folder, expected] : std::vector<std::pair<std::string, std::string>>{
           {"", "results/own-4/logs/1f1b/exact-%3Cmlp%3E%20%231/backend.log"},
           {"../a b", "../a%20b/results/own-4/logs/1f1b/exact-%3Cmlp%3E%20%231/backend.log"}}) {
    const pugi::xml_document page = parsed(report_page({{"here", sample_report(), folder}}));
    EXPECT_EQ(count(page, "//p[@class='log']"), 1u);
    EXPECT_EQ(page.select_node("//p[@class='log']/a").node().attribute("href").value(), expected);
  }
}

TEST(Page, NeedsNothingElseAndTellsWhereItWasMade) {
  const std::string source = report_page({{"here", sample_report()}});
  for (const char* outside : {"http://", "https://", "src=", "@import", "url("}) {
    for (size_t at = 0; (at = source.find(outside, at)) != std::string::npos; ++at) {
      const std::string place = source.substr(at, 40);
      EXPECT_TRUE(place.starts_with("http://www.w3.org/2000/svg") || place.starts_with("https://x,")) << place;
    }
  }
  const pugi::xml_document page = parsed(source);
  EXPECT_EQ(count(page, "//table[@class='plain']//tr[th='dirty']/td[.='no']"), 1u);
  EXPECT_EQ(count(page, "//tr[th='environment: OMP_NUM_THREADS']/td[.='1']"), 1u);
  EXPECT_EQ(count(page, "//details[@class='timeline']"), 1u);
  EXPECT_NE(text(page, "//section[h2='Outside of any case']").find("the ranks died"), std::string::npos);
}

TEST(Page, SeveralReportsStandBesideEachOther) {
  RunReport other = sample_report();
  other.backend = {"torch-pipelining", "2.15.0", "cpu", {}};
  const pugi::xml_document page = parsed(report_page({{"ours", sample_report()}, {"theirs", other}}));
  EXPECT_EQ(count(page, "//table[@id='matrix']/thead/tr[1]/th[@colspan='2']"), 12u);
  EXPECT_EQ(count(page, "//table[@id='matrix']/thead/tr[2]/th"), 24u);
  EXPECT_EQ(count(page, "//table[@id='matrix']/tbody/tr[1]/td"), 25u);
  EXPECT_EQ(count(page, "//article[@data-report='1']"), count(page, "//article[@data-report='0']"));
  EXPECT_NE(text(page, "//header").find("theirs: torch-pipelining 2.15.0"), std::string::npos);
}

TEST(Page, ARowShowsEachTruthThatJudgedAVerdict) {
  RunReport ours, theirs, none;
  ours.verdicts = {sample_verdict("lm", "gpipe", Status::Pass)};
  ours.verdicts[0].finding.truth = reference::Truth::SameOrder;
  theirs.verdicts = none.verdicts = ours.verdicts;
  theirs.verdicts[0].finding.truth = reference::Truth::Bounded;
  none.verdicts[0].finding = {.truth = reference::Truth::Exact, .status = Status::Unsupported};
  const auto truth = [](const std::vector<PageReport>& reports) {
    return text(parsed(report_page(reports)), "//td[@class='truth']");
  };
  EXPECT_EQ(truth({{"none", none}, {"theirs", theirs}, {"ours", ours}}), "same-order / bounded");
  EXPECT_EQ(truth({{"theirs", theirs}}), "bounded");
  EXPECT_EQ(truth({{"none", none}}), "exact");
}

}  // namespace
}  // namespace plumbline::conformance
