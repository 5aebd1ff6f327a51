#include "bench/page/trends_page.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "bench/history/changes.h"
#include "conformance/judge/verdict/finding.h"
#include "runtime/text/counted.h"
#include "runtime/text/filled.h"
#include "runtime/text/xml_text.h"

namespace plumbline::bench {
namespace {

std::string css_class(Change change) {
  std::string name = change_name(change);
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string word(Change change) {
  return "<span class=\"word " + css_class(change) + "\">" + change_name(change) + "</span>";
}

std::string table(const std::vector<std::string>& heads, const std::string& rows) {
  std::string html = "<div class=\"scroll\"><table><thead><tr>";
  for (const std::string& head : heads) html += "<th scope=\"col\">" + head + "</th>";
  return html + "</tr></thead><tbody>\n" + rows + "</tbody></table></div>\n";
}

std::string summary(const std::vector<Trend>& trends) {
  std::map<Change, size_t> counts;
  for (const Trend& trend : trends) ++counts[trend.now.change];
  if (counts[Change::Regressed] > 0) return std::to_string(counts[Change::Regressed]) + " regressed";
  if (counts[Change::Unchanged] + counts[Change::Improved] > 0) return "nothing regressed";
  return "nothing can be told";
}

std::string row(std::span<const BenchRun> history, const Trend& trend, bool with_benchmark) {
  const Judgement& now = trend.now;
  const bool moved = now.change == Change::Regressed || now.change == Change::Improved;
  const std::string change = std::isfinite(now.ratio) ? change_percent(now.ratio) : "from 0";
  std::string why = xml_escaped(now.reason);
  if (trend.since) {
    const BenchRun& first = history[trend.since->run];
    why = xml_escaped(first.commit) + ", " + xml_escaped(first.date.substr(0, 10));
    if (trend.figure.kind == Kind::Timed && trend.since->runs < 2) why += "; in one run only";
  }
  return "<tr><th scope=\"row\">" + xml_escaped((with_benchmark ? trend.benchmark + " " : "") + trend.figure.name) +
         "</th><td>" + (trend.figure.kind == Kind::Timed ? "timed" : "counted") + "</td><td class=\"number\">" +
         xml_escaped(value_text(trend.points.back().value, trend.figure.unit)) + "</td><td>" + word(now.change) +
         "</td><td class=\"number\">" + (moved ? change : "") + "</td><td>" + why + "</td><td>" +
         trend_svg(history, trend) + "</td></tr>\n";
}

const std::vector<std::string> kHeads = {"figure", "kind", "now", "verdict", "change", "since", "runs"};

std::string changed(std::span<const BenchRun> history, const std::vector<Trend>& trends) {
  std::string rows;
  for (const Change kind : {Change::Regressed, Change::Improved})
    for (const Trend& trend : trends)
      if (trend.now.change == kind) rows += row(history, trend, true);
  if (rows.empty()) return {};
  return "<section><h2>Changed</h2>\n" + table(kHeads, rows) + "</section>\n";
}

std::string figures(std::span<const BenchRun> history, const std::vector<Trend>& trends) {
  std::vector<std::string> names;
  std::map<std::string, std::string> rows;
  for (const Trend& trend : trends) {
    if (!rows.contains(trend.benchmark)) names.push_back(trend.benchmark);
    rows[trend.benchmark] += row(history, trend, false);
  }
  std::string html =
      "<section><h2>Figures</h2>\n<p class=\"hint\">A line joins the medians of the runs, the oldest on the "
      "left; the band is the middle half of the samples. Hollow: the machine was not steady. Dashed: a new "
      "level begins.</p>\n";
  for (const std::string& name : names) html += "<h3>" + xml_escaped(name) + "</h3>\n" + table(kHeads, rows[name]);
  return html + "</section>\n";
}

/// One row for each report: what was judged, and with which result.
std::string scoreboard(const std::vector<Coverage>& coverage) {
  if (coverage.empty()) return {};
  std::string rows;
  for (const Coverage& one : coverage) {
    const conformance::RunReport& report = one.report;
    std::set<std::string> cases, schedules;
    int passed = 0, failed = static_cast<int>(report.broken.size()), waived = 0, not_judged = 0;
    for (const conformance::Verdict& verdict : report.verdicts) {
      const conformance::Status status = verdict.finding.status;
      if (conformance::is_failure(status))
        ++failed;
      else if (status == conformance::Status::Pass)
        ++passed;
      else if (status == conformance::Status::XFail)
        ++waived;
      else
        ++not_judged;
      if (status != conformance::Status::Pass && status != conformance::Status::XFail) continue;
      cases.insert(verdict.run.case_id);
      schedules.insert(verdict.run.schedule);
    }
    const auto number = [](size_t value, const char* kind) {
      return "<td class=\"number\">" + (value > 0 ? "<span class=\"word " + std::string(kind) + "\">" : "<span>") +
             std::to_string(value) + "</span></td>";
    };
    rows += "<tr><th scope=\"row\">" + xml_escaped(one.label) + "</th><td>" +
            xml_escaped(report.backend.name + " " + report.backend.version) + "</td><td class=\"number\">" +
            std::to_string(cases.size()) + "</td><td class=\"number\">" + std::to_string(schedules.size()) + "</td>" +
            number(passed, "improved") + number(waived, "cannot-tell") + number(failed, "regressed") +
            number(not_judged, "") + "</tr>\n";
  }
  return "<section><h2>Coverage</h2>\n<p class=\"hint\">Runs of the corpus, a case under a schedule each. Cases and "
         "schedules "
         "count where a run passed or failed as a waiver expects.</p>\n" +
         table({"report", "backend", "cases", "schedules", "passed", "waived", "failed", "not judged"}, rows) +
         "</section>\n";
}

}  // namespace

std::string trends_page(std::span<const BenchRun> history, const std::vector<Trend>& trends,
                        const std::vector<Coverage>& coverage) {
  const BenchRun& last = history.back();
  const std::string header =
      "<header>\n<h1>plumbline speed <span>" + summary(trends) + "</span></h1>\n<p class=\"hint\">" +
      xml_escaped(counted(static_cast<long long>(history.size()), "run") + ", the last of " + last.date + ", commit " +
                  last.commit + (last.modified ? " (modified)" : "") + ", " + last.machine.hardware + ", LibTorch " +
                  last.machine.libtorch + ", " + last.machine.mpi + ", " + last.machine.compiler) +
      "</p>\n</header>\n";
  return filled(trends_html, {{"title", "plumbline speed: " + summary(trends)},
                              {"trends.css", std::string(trends_css)},
                              {"header", header},
                              {"main", changed(history, trends) + scoreboard(coverage) + figures(history, trends)}});
}

}  // namespace plumbline::bench
