#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>

#include "conformance/report/page/page_parts.h"
#include "runtime/text/join.h"
#include "runtime/text/significant.h"
#include "runtime/text/xml_text.h"

namespace plumbline::conformance {
namespace {

std::string figure(double value) {
  if (std::isnan(value)) return "not a number";
  if (std::isinf(value)) return value > 0 ? "infinite" : "-infinite";
  return significant(value, 4);
}

std::string attribute(const char* name, const std::string& value) {
  return std::string(" ") + name + "=\"" + xml_escaped(value) + "\"";
}

std::string element(const char* name, const std::string& text) {
  return std::string("<") + name + ">" + xml_escaped(text) + "</" + name + ">";
}

/// A path as a relative URL (RFC 3986): every byte that is neither unreserved nor a slash is percent-encoded.
std::string url_path(const std::filesystem::path& path) {
  std::string url;
  for (const char c : path.generic_string()) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("-._~/").find(c) != std::string::npos) {
      url += c;
      continue;
    }
    std::array<char, 4> code;
    std::snprintf(code.data(), code.size(), "%%%02X", static_cast<unsigned char>(c));
    url += code.data();
  }
  return url;
}

/// The values around the first difference.
std::string neighbourhood(const Difference& d) {
  if (d.around.empty()) return {};
  std::string html = "<table class=\"around\"><caption>" + xml_escaped(d.key.name + " " + d.actual_form) +
                     (d.bounded ? ", around its worst element" : ", around the first element that differs") +
                     "</caption><thead><tr><th scope=\"col\">element</th><th scope=\"col\">expected</th>"
                     "<th scope=\"col\">got</th>" +
                     (d.bounded ? "<th scope=\"col\">error / bound</th>" : "") +
                     "<th scope=\"col\"></th></tr></thead><tbody>\n";
  for (const Neighbour& n : d.around) {
    html += std::string("<tr") + (n.differs ? " class=\"differs\"" : "") + "><th scope=\"row\">" +
            position_text(n.position) + "</th>" + element("td", n.expected_text) + element("td", n.actual_text);
    if (d.bounded) html += element("td", figure(n.ratio_of_bound));
    html += n.differs ? "<td>\xe2\x9c\x97 differs</td></tr>\n" : "<td></td></tr>\n";
  }
  return html + "</tbody></table>\n";
}

std::string measured(const Difference& d) {
  if (d.what != DifferenceKind::Value && d.what != DifferenceKind::Norm) return {};
  std::string text = "Largest error " + figure(d.max_abs) + "; relative norm of the error " + figure(d.relative_norm);
  if (d.bounded)
    text += " (allowed: " + figure(d.norm_limit) + "); worst element at " + figure(d.max_ratio_of_bound) +
            " times its bound";
  return "<p>" + xml_escaped(text + ".") + "</p>\n";
}

/// The used fraction of a bound, as a number and as a bar.
std::string used(const char* what, double ratio, const std::string& key) {
  const double shown = std::isfinite(ratio) ? std::min(ratio, 1.0) : 1.0;
  return "<p>" + xml_escaped(std::string(what) + ": " + figure(ratio) + " of what is allowed (" + key + ")") +
         " <meter min=\"0\" max=\"1\" high=\"0.9\" value=\"" + figure(shown) + "\">" + xml_escaped(figure(ratio)) +
         "</meter></p>\n";
}

std::string differences(const Verdict& v) {
  if (!v.finding.first) return {};
  std::string html = measured(*v.finding.first) + neighbourhood(*v.finding.first);
  if (v.finding.all.size() < 2) return html;
  html += "<details><summary>" + std::to_string(v.finding.differing - 1) +
          " more that differ, in causal order</summary><ul>\n";
  for (size_t i = 1; i < v.finding.all.size(); ++i) html += element("li", sentence(v.finding.all[i])) + "\n";
  if (const int64_t rest = v.finding.differing - static_cast<int64_t>(v.finding.all.size()); rest > 0)
    html += "<li>and " + std::to_string(rest) + " that are not listed</li>\n";
  return html + "</ul></details>\n";
}

}  // namespace

std::string_view page_symbol(Status status) {
  switch (status) {
    case Status::Pass:
      return "\xe2\x9c\x93";
    case Status::Fail:
      return "\xe2\x9c\x97";
    case Status::Unsupported:
      return "\xe2\x80\x93";
    case Status::Skipped:
      return "s";
    case Status::Error:
      return "E";
    case Status::Timeout:
      return "T";
    case Status::NotRun:
      return "?";
    case Status::Mistrusted:
      return "M";
    case Status::XFail:
      return "w";
    case Status::XPass:
      return "!";
  }
  return "?";
}

std::string verdict_article(const Verdict& v, const std::string& id, size_t report, const std::string& backend,
                            const std::filesystem::path& folder) {
  const std::string status(status_name(v.finding.status)), truth(to_string(v.finding.truth)), place = place_of(v.run);
  std::string html =
      "<article class=\"verdict " + status + "\"" + attribute("id", id) + attribute("data-case", v.run.case_id) +
      attribute("data-schedule", v.run.schedule) + attribute("data-status", status) + attribute("data-truth", truth) +
      attribute("data-report", std::to_string(report)) + attribute("data-ranks", std::to_string(v.run.ranks)) +
      attribute("data-transport", v.run.transport) + ">\n";
  html += "<h3><span class=\"symbol\" aria-hidden=\"true\">" + std::string(page_symbol(v.finding.status)) + "</span> " +
          xml_escaped(v.run.case_id + " \xc3\x97 " + v.run.schedule) + " <small>" +
          xml_escaped(join(std::vector<std::string>{status, backend}) + (place.empty() ? "" : ", " + place)) +
          "</small></h3>\n";
  if (!v.title.empty()) html += "<p class=\"title\">" + xml_escaped(v.title) + "</p>\n";
  html += "<p class=\"sentence\">" + xml_escaped(sentence(v)) + "</p>\n";
  if (!v.repro.empty())
    html += "<p class=\"repro\"><code>" + xml_escaped(v.repro) +
            "</code> <button type=\"button\" class=\"copy\" hidden>Copy</button></p>\n";
  if (!v.log.empty())
    html += "<p class=\"log\">What the backend printed: <a" + attribute("href", url_path(folder / v.log)) + ">" +
            xml_escaped(v.log) + "</a></p>\n";
  if (v.finding.bound_use)
    html += used("Error against bound, worst element", v.finding.bound_use->ratio, v.finding.bound_use->key) +
            used("Norm of the error, worst tensor", v.finding.bound_use->norm_ratio, v.finding.bound_use->norm_key);
  html += differences(v);
  html += "<p class=\"facts\">Truth: " + truth;
  if (!v.dtype.empty()) html += "; dtype: " + xml_escaped(v.dtype);
  if (!v.device.empty()) html += "; device: " + xml_escaped(v.device);
  if (!v.finding.checked.empty()) html += "; checked: " + xml_escaped(join(v.finding.checked));
  if (v.finding.tensors > 0)
    html += "; " + std::to_string(v.finding.tensors) + " tensors, " + std::to_string(v.finding.elements) + " elements";
  return html + "; " + figure(v.seconds) + " s</p>\n</article>\n";
}

}  // namespace plumbline::conformance
