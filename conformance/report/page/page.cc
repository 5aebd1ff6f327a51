#include "conformance/report/page/page.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "conformance/report/page/page_parts.h"
#include "conformance/report/svg/svg.h"
#include "runtime/text/filled.h"
#include "runtime/text/xml_text.h"

namespace plumbline::conformance {
namespace {

struct PageRow {
  std::string case_id, title;
  RowTruths truths;
};

/// Collects the content of the page once: rows, schedules and the verdicts behind each cell.
class Page {
 public:
  explicit Page(const std::vector<PageReport>& reports) : reports_(reports) {
    for (size_t r = 0; r < reports.size(); ++r) {
      for (const Verdict& verdict : reports[r].report.verdicts) {
        const auto [row, is_new] = row_of_.try_emplace(verdict.run.case_id, rows_.size());
        if (is_new) rows_.push_back({verdict.run.case_id, verdict.title, {}});
        rows_[row->second].truths.add(verdict.finding);
        if (std::find(schedules_.begin(), schedules_.end(), verdict.run.schedule) == schedules_.end())
          schedules_.push_back(verdict.run.schedule);
        cells_[{verdict.run.case_id, verdict.run.schedule, r}].push_back(verdicts_.size());
        verdicts_.push_back({&verdict, r});
        ++counts_[verdict.finding.status];
      }
    }
    put_in_order(schedules_);
  }

  std::string html() const {
    return filled(page_html, {{"title", xml_escaped("plumbline: " + summary())},
                              {"page.css", std::string(page_css)},
                              {"header", header()},
                              {"main", outside() + filters() + matrix() + measurements() + details() + provenance()},
                              {"page.js", std::string(page_js)}});
  }

 private:
  struct Shown {
    const Verdict* verdict;
    size_t report;
  };

  std::string backend_of(size_t report) const {
    const BackendIdentity& backend = reports_[report].report.backend;
    return backend.name + (backend.version.empty() ? "" : " " + backend.version);
  }

  /// "2 failed", "all as expected", "nothing was judged".
  std::string summary() const {
    int failed = 0, good = 0, not_run = 0;
    for (const auto& [status, count] : counts_) {
      if (is_failure(status)) failed += count;
      if (status == Status::Pass || status == Status::XFail) good += count;
      if (status == Status::NotRun) not_run += count;
    }
    for (const PageReport& one : reports_) failed += static_cast<int>(one.report.broken.size());
    if (failed > 0) return std::to_string(failed) + " failed";
    if (not_run > 0) return std::to_string(not_run) + " not run";
    return good > 0 ? "all as expected" : "nothing was judged";
  }

  std::string header() const {
    std::string html =
        "<header>\n<h1>plumbline <span>" + xml_escaped(summary()) + "</span></h1>\n<ul class=\"counts\">";
    for (const Status status : all_statuses)
      if (const auto it = counts_.find(status); it != counts_.end())
        html += "<li class=\"" + std::string(status_name(status)) + "\"><span class=\"symbol\">" +
                std::string(page_symbol(status)) + "</span> " + std::to_string(it->second) + " " +
                std::string(status_name(status)) + "</li>";
    html += "</ul>\n<p>";
    for (size_t r = 0; r < reports_.size(); ++r)
      html += (r == 0 ? "" : "; ") + xml_escaped(reports_[r].label + ": " + backend_of(r));
    return html + "</p>\n</header>\n";
  }

  std::string outside() const {
    std::string html;
    for (const PageReport& one : reports_)
      for (const auto& [lines, what] : {std::pair(&one.report.broken, "Failed"), std::pair(&one.report.notes, "Note")})
        for (const std::string& line : *lines)
          html += "<li>" + std::string(what) + " (" + xml_escaped(one.label) + "): " + xml_escaped(line) + "</li>\n";
    if (html.empty()) return {};
    return "<section aria-labelledby=\"outside\"><h2 id=\"outside\">Outside of any case</h2><ul>\n" + html +
           "</ul></section>\n";
  }

  template <class Values>
  static std::string choice(const char* name, const char* label, const Values& values) {
    if (values.size() < 2) return {};
    std::string html =
        std::string("<label>") + label + " <select name=\"" + name + "\"><option value=\"\">all</option>";
    for (const auto& [value, text] : values)
      html += "<option value=\"" + xml_escaped(value) + "\">" + xml_escaped(text) + "</option>";
    return html + "</select></label>\n";
  }

  /// Hidden until the script runs.
  std::string filters() const {
    using Values = std::vector<std::pair<std::string, std::string>>;
    std::set<std::string> truths, transports;
    std::set<int> ranks;
    for (const Shown& shown : verdicts_) {
      truths.insert(std::string(to_string(shown.verdict->finding.truth)));
      transports.insert(shown.verdict->run.transport);
      ranks.insert(shown.verdict->run.ranks);
    }
    Values truth_values, rank_values, transport_values, report_values;
    for (const std::string& truth : truths) truth_values.emplace_back(truth, truth);
    for (const std::string& transport : transports) transport_values.emplace_back(transport, transport);
    for (const int n : ranks) rank_values.emplace_back(std::to_string(n), std::to_string(n));
    for (size_t r = 0; r < reports_.size(); ++r) report_values.emplace_back(std::to_string(r), reports_[r].label);
    std::string html =
        "<form id=\"filters\" hidden aria-label=\"Filter the matrix\">\n<label>Text <input type=\"search\" "
        "name=\"text\" "
        "placeholder=\"case, schedule, words of a verdict\" "
        "autocomplete=\"off\"></label>\n<fieldset><legend>Status</legend>";
    for (const Status status : all_statuses) {
      if (!counts_.contains(status)) continue;
      const std::string name(status_name(status));
      html += "<label class=\"" + name + "\"><input type=\"checkbox\" name=\"status\" value=\"" + name +
              "\"> <span class=\"symbol\">" + std::string(page_symbol(status)) + "</span> " + name + "</label>";
    }
    html += "</fieldset>\n" + choice("truth", "Truth", truth_values) + choice("report", "Backend", report_values) +
            choice("ranks", "Ranks", rank_values) + choice("transport", "Transport", transport_values) +
            "<button type=\"reset\">Show all</button>\n<output id=\"shown\" role=\"status\"></output>\n</form>\n";
    return html;
  }

  static std::string truth_text(const PageRow& row) {
    std::string text;
    for (const reference::Truth truth : row.truths.kinds())
      text += (text.empty() ? "" : " / ") + std::string(to_string(truth));
    return text;
  }

  std::string cell(const PageRow& row, size_t schedule, size_t report) const {
    const auto it = cells_.find({row.case_id, schedules_[schedule], report});
    if (it == cells_.end()) return "<td></td>";
    Status shown = verdicts_[it->second.front()].verdict->finding.status;
    size_t first = it->second.front();
    std::string ids;
    for (const size_t index : it->second) {
      const Status status = verdicts_[index].verdict->finding.status;
      if (worse(shown, status) != shown) shown = status, first = index;
      ids += (ids.empty() ? "" : " ") + std::to_string(index);
    }
    const std::string status(status_name(shown));
    const std::string count = it->second.size() > 1 ? std::to_string(it->second.size()) : "";
    const std::string name =
        row.case_id + ", " + schedules_[schedule] + (reports_.size() > 1 ? ", " + reports_[report].label : "");
    return "<td><a class=\"" + status + "\" href=\"#v" + std::to_string(first) + "\" data-v=\"" + ids +
           "\" data-name=\"" + xml_escaped(name) + "\" aria-label=\"" + xml_escaped(name + ": " + status) +
           "\"><span class=\"symbol\">" + std::string(page_symbol(shown)) + "</span><sub>" + count + "</sub></a></td>";
  }

  std::string matrix() const {
    std::string html =
        "<section aria-labelledby=\"cells\"><h2 id=\"cells\">Cases and schedules</h2>\n<p class=\"hint\">A cell shows "
        "the worst of its verdicts and leads to them; a small number says how many there are.</p>\n<div "
        "class=\"scroll\" tabindex=\"0\" role=\"region\" aria-labelledby=\"cells\"><table "
        "id=\"matrix\">\n<thead><tr><th scope=\"col\" class=\"corner\"" +
        std::string(reports_.size() > 1 ? " rowspan=\"2\"" : "") + ">case</th><th scope=\"col\"" +
        (reports_.size() > 1 ? " rowspan=\"2\"" : "") + ">truth</th>";
    for (const std::string& schedule : schedules_)
      html += reports_.size() > 1
                  ? "<th scope=\"colgroup\" colspan=\"" + std::to_string(reports_.size()) +
                        "\" class=\"schedule group\"><span>" + xml_escaped(schedule) + "</span></th>"
                  : "<th scope=\"col\" class=\"schedule\"><span>" + xml_escaped(schedule) + "</span></th>";
    html += "</tr>";
    if (reports_.size() > 1) {
      html += "<tr>";
      for (size_t s = 0; s < schedules_.size(); ++s)
        for (const PageReport& one : reports_)
          html += "<th scope=\"col\" class=\"schedule\"><span>" + xml_escaped(one.label) + "</span></th>";
      html += "</tr>";
    }
    html += "</thead>\n<tbody>\n";
    for (const PageRow& row : rows_) {
      html += "<tr><th scope=\"row\" title=\"" + xml_escaped(row.title) + "\">" + xml_escaped(row.case_id) +
              "</th><td class=\"truth\">" + truth_text(row) + "</td>";
      for (size_t s = 0; s < schedules_.size(); ++s)
        for (size_t r = 0; r < reports_.size(); ++r) html += cell(row, s, r);
      html += "</tr>\n";
    }
    return html + "</tbody></table></div></section>\n";
  }

  static std::string number(double value, const char* format) {
    return std::isfinite(value) ? svg_number(value, format) : "?";
  }

  std::string measurements() const {
    std::string rows, pictures;
    for (const PageReport& one : reports_) {
      for (const Throughput& t : one.report.throughput) {
        rows += "<tr><th scope=\"row\">" + xml_escaped(t.schedule) + "</th><td>" + xml_escaped(t.workload) +
                "</td><td>" + xml_escaped(one.label) + "</td><td>" + std::to_string(t.ranks) + "</td><td>" +
                number(1000 * t.step_seconds, "%.4g") + "</td><td>" + number(t.ratio_to_ideal_step, "%.3f") +
                "</td><td>" + number(100 * t.bubble_measured, "%.1f") + "</td><td>" +
                number(100 * t.bubble_ideal, "%.1f") + "</td></tr>\n";
        if (!t.timeline.empty())
          pictures += "<details class=\"timeline\"><summary>" +
                      xml_escaped(t.schedule + ", " + t.workload + ", " + one.label) + "</summary>" + t.timeline +
                      "</details>\n";
      }
    }
    if (rows.empty()) return {};
    return "<section aria-labelledby=\"speed\"><h2 id=\"speed\">Measurements</h2>\n<div class=\"scroll\" "
           "tabindex=\"0\" "
           "role=\"region\" aria-labelledby=\"speed\"><table class=\"plain\"><thead><tr><th "
           "scope=\"col\">schedule</th><th "
           "scope=\"col\">workload</th><th scope=\"col\">report</th><th scope=\"col\">ranks</th><th "
           "scope=\"col\">step, ms</th><th scope=\"col\">of the ideal step</th><th scope=\"col\">bubble, %</th><th "
           "scope=\"col\">in theory, %</th></tr></thead><tbody>\n" +
           rows + "</tbody></table></div>\n" +
           (pictures.empty() ? "" : "<h3>Timelines, predicted above measured</h3>\n" + pictures) + "</section>\n";
  }

  std::string details() const {
    std::string html = "<section id=\"details\" aria-labelledby=\"verdicts\"><h2 id=\"verdicts\">Verdicts</h2>\n";
    for (size_t i = 0; i < verdicts_.size(); ++i)
      html +=
          verdict_article(*verdicts_[i].verdict, "v" + std::to_string(i), verdicts_[i].report,
                          reports_.size() > 1 ? reports_[verdicts_[i].report].label : backend_of(verdicts_[i].report),
                          reports_[verdicts_[i].report].folder);
    return html + "</section>\n";
  }

  std::string provenance() const {
    std::string html = "<section aria-labelledby=\"made\"><h2 id=\"made\">Where this was made</h2>\n";
    for (const PageReport& one : reports_) {
      const auto add = [&](const std::string& name, const std::string& value) {
        html += "<tr><th scope=\"row\">" + xml_escaped(name) + "</th><td>" + xml_escaped(value) + "</td></tr>\n";
      };
      html += "<details" + std::string(reports_.size() == 1 ? " open" : "") + "><summary>" + xml_escaped(one.label) +
              "</summary><div class=\"scroll\"><table class=\"plain\"><tbody>\n";
      for (const auto& [name, value] : one.report.context) add(name, value);
      for (const auto& [name, value] : one.report.environment) add("environment: " + name, value);
      if (!one.report.backend.describe.empty()) add("backend's description", one.report.backend.describe);
      html += "</tbody></table></div></details>\n";
    }
    return html + "</section>\n";
  }

  const std::vector<PageReport>& reports_;
  std::vector<PageRow> rows_;
  std::map<std::string, size_t> row_of_;
  std::vector<std::string> schedules_;
  std::vector<Shown> verdicts_;
  std::map<std::tuple<std::string, std::string, size_t>, std::vector<size_t>> cells_;
  std::map<Status, int> counts_;
};

}  // namespace

std::string page_label(const std::filesystem::path& folder) {
  const std::filesystem::path path = std::filesystem::absolute(folder).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

std::string report_page(const std::vector<PageReport>& reports) { return Page(reports).html(); }

}  // namespace plumbline::conformance
