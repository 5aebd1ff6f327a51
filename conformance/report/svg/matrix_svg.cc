#include "conformance/report/svg/matrix_svg.h"

#include <algorithm>
#include <cmath>

#include "conformance/report/svg/svg.h"
#include "runtime/text/counted.h"

namespace plumbline::conformance {
namespace {

// Pixels. The picture is drawn from top to bottom; each part takes its upper edge and returns its lower one.
constexpr int matrix_width = 900;
constexpr double matrix_margin = 28;
constexpr double matrix_right = matrix_width - matrix_margin;
constexpr double truth_x = 352;
constexpr double cells_x = 440;
constexpr double row_height = 27;

constexpr const char* measured_colour = "#0969da";
constexpr const char* ideal_colour = "#b6c2cf";

struct StatusColours {
  const char* fill;
  const char* mark;
};

StatusColours colours_of(Status status) {
  switch (status) {
    case Status::Pass:
      return {"#d7f5df", "#116329"};
    case Status::Fail:
      return {"#ffd8d3", "#a40e26"};
    case Status::Error:
      return {"#ffd8d3", "#a40e26"};
    case Status::Timeout:
      return {"#ffe2c7", "#8a3800"};
    case Status::Mistrusted:
    case Status::XPass:
      return {"#fbefb5", "#6f4e00"};
    case Status::XFail:
      return {"#e9dcfb", "#512a97"};
    case Status::NotRun:
      return {"#ffffff", "#656d76"};
    case Status::Unsupported:
    case Status::Skipped:
      return {"#eef1f4", "#656d76"};
  }
  return {"#ffffff", "#656d76"};
}

/// A measured value as text. One that is not finite has no bar, and no number either.
std::string figure(double value, const char* format) {
  return std::isfinite(value) ? svg_number(value, format) : "n/a";
}

struct TextStyle {
  double size = 13;
  const char* colour = ink;
  const char* anchor = "start";
  bool bold = false;
  double rotate = 0;
};

/// The estimated width of a text. Fonts differ, so it is a generous estimate.
double text_width(const std::string& text, double size) { return 0.56 * size * static_cast<double>(text.size()); }

std::string shortened(const std::string& text, double size, double room) {
  const auto fits = static_cast<size_t>(std::max(1.0, room / (0.56 * size)));
  if (text.size() <= fits) return text;
  size_t end = fits - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not inside a UTF-8 character
  return text.substr(0, end) + "\xe2\x80\xa6";
}

pugi::xml_node add_text(pugi::xml_node svg, double x, double y, const std::string& text, const TextStyle& style = {}) {
  pugi::xml_node element = add_element(svg, "text",
                                       {{"x", svg_number(x)},
                                        {"y", svg_number(y)},
                                        {"font-size", svg_number(style.size)},
                                        {"fill", style.colour},
                                        {"text-anchor", style.anchor}},
                                       text);
  if (style.bold) element.append_attribute("font-weight").set_value("600");
  if (style.rotate != 0)
    element.append_attribute("transform")
        .set_value(("rotate(" + svg_number(style.rotate) + " " + svg_number(x) + " " + svg_number(y) + ")").c_str());
  return element;
}

/// A heading and its explanation in one line. The explanation follows the heading whatever the font's width.
void add_heading(pugi::xml_node svg, double y, const std::string& heading, double size,
                 const std::string& explanation) {
  add_element(add_text(svg, matrix_margin, y, heading, {size, ink, "start", true}), "tspan",
              {{"dx", "12"}, {"font-size", "14"}, {"font-weight", "400"}, {"fill", faint}}, explanation);
}

void add_box(pugi::xml_node svg, double x, double y, double w, double h, const char* fill, const char* stroke = "none",
             double radius = 4) {
  add_element(svg, "rect",
              {{"x", svg_number(x)},
               {"y", svg_number(y)},
               {"width", svg_number(std::max(w, 0.0))},
               {"height", svg_number(h)},
               {"rx", svg_number(radius)},
               {"fill", fill},
               {"stroke", stroke}});
}

void add_rule(pugi::xml_node svg, double x1, double y1, double x2, double y2) {
  add_element(svg, "path",
              {{"d", "M" + svg_number(x1) + " " + svg_number(y1) + "L" + svg_number(x2) + " " + svg_number(y2)},
               {"stroke", line_colour},
               {"fill", "none"}});
}

/// A check mark, a cross, a dash or a letter, so that a cell can be read without colour.
void add_mark(pugi::xml_node svg, Status status, double x, double y) {
  const char* colour = colours_of(status).mark;
  const char* path = status == Status::Pass          ? "M-5 0.5L-1.5 4L5.5 -4"
                     : status == Status::Fail        ? "M-4 -4L4 4M4 -4L-4 4"
                     : status == Status::Unsupported ? "M-4 0L4 0"
                                                     : nullptr;
  if (path == nullptr) {
    add_text(svg, x, y + 4.5, std::string(1, status_symbol(status)), {13, colour, "middle", true});
    return;
  }
  add_element(svg, "path",
              {{"transform", "translate(" + svg_number(x) + " " + svg_number(y) + ")"},
               {"d", path},
               {"stroke", colour},
               {"stroke-width", "2.2"},
               {"fill", "none"},
               {"stroke-linecap", "round"},
               {"stroke-linejoin", "round"}});
}

void add_cell(pugi::xml_node svg, Status status, double x, double y, double w, double h) {
  add_box(svg, x, y, w, h, colours_of(status).fill, status == Status::NotRun ? line_colour : "none");
  add_mark(svg, status, x + w / 2, y + h / 2);
}

/// The parts of the context that identify the origin of a picture, if present.
std::string origin(const RunReport& report) {
  std::string line;
  for (const char* wanted : {"version", "commit", "backend", "transport", "ranks", "hardware"})
    for (const auto& [name, value] : report.context)
      if (name == wanted && !value.empty())
        line += (line.empty() ? "" : "  \xc2\xb7  ") + (name == "hardware" ? value : name + " " + value);
  return line;
}

double draw_title(pugi::xml_node svg, const RunReport& report) {
  add_heading(svg, 44, "plumbline", 24, "conformance of pipeline-parallel training");
  const std::map<Status, int> counts = count_statuses(report.verdicts);
  const auto passed = counts.find(Status::Pass);
  const int pass_count = passed == counts.end() ? 0 : passed->second;
  const int code = exit_code(report);
  const Status overall = code == 0 ? Status::Pass : code == 1 ? Status::Fail : Status::NotRun;
  // An unsupported run is not a result, so it is counted apart.
  const auto found = counts.find(Status::Unsupported);
  const int unsupported = found == counts.end() ? 0 : found->second;
  const std::string summary = std::to_string(pass_count) + " of " +
                              std::to_string(static_cast<int>(report.verdicts.size()) - unsupported) + " pass" +
                              (unsupported == 0 ? "" : ", " + std::to_string(unsupported) + " unsupported");
  const double pill = 1.15 * text_width(summary, 15) + 48;
  add_box(svg, matrix_right - pill, 24, pill, 28, colours_of(overall).fill, code == 3 ? line_colour : "none", 14);
  add_mark(svg, overall, matrix_right - pill + 20, 38);
  add_text(svg, matrix_right - 16, 43, summary, {15, colours_of(overall).mark, "end", true});
  const std::string line = origin(report);
  if (line.empty()) return 62;
  add_text(svg, matrix_margin, 70, shortened(line, 12, matrix_right - matrix_margin), {12, faint});
  return 80;
}

double draw_headings(pugi::xml_node svg, const Matrix& matrix, double column, double top) {
  double longest = 0;
  for (const std::string& schedule : matrix.schedules) longest = std::max(longest, text_width(schedule, 13));
  const bool upright = longest + 8 <= column;
  const double bottom = top + (upright ? 34 : 20 + 0.64 * longest);  // slanted by 40 degrees
  add_text(svg, matrix_margin, bottom - 10, "case", {12, faint});
  add_text(svg, truth_x, bottom - 10, "truth", {12, faint});
  for (size_t i = 0; i < matrix.schedules.size(); ++i) {
    const double x = cells_x + (static_cast<double>(i) + 0.5) * column;
    if (upright)
      add_text(svg, x, bottom - 10, matrix.schedules[i], {13, ink, "middle", true});
    else
      add_text(svg, x - 2, bottom - 8, matrix.schedules[i], {13, ink, "start", true, -40});
  }
  add_rule(svg, matrix_margin, bottom, matrix_right, bottom);
  return bottom + 4;
}

/// The verdicts behind a cell, one line each: the sentence of the worst, status and place of the others.
std::string sentences(const std::vector<const Verdict*>& verdicts) {
  std::string text = sentence(*verdicts.front());
  for (size_t i = 1; i < verdicts.size(); ++i)
    text += "\nalso " + std::string(status_name(verdicts[i]->finding.status)) + " (" + place_of(verdicts[i]->run) + ")";
  return text;
}

/// A group that shows `title` on hovering.
pugi::xml_node add_titled(pugi::xml_node svg, const std::string& title) {
  const pugi::xml_node group = svg.append_child("g");
  add_element(group, "title", {}, title);
  return group;
}

double draw_matrix(pugi::xml_node svg, const RunReport& report, double top) {
  const Matrix matrix = matrix_of(report.verdicts);
  if (matrix.rows.empty()) return top;
  // Slanted headings need room to the right of the last column.
  const double room = matrix_right - cells_x - (matrix.schedules.size() > 4 ? 60 : 0);
  const double column = std::min(216.0, room / static_cast<double>(matrix.schedules.size()));
  double y = draw_headings(svg, matrix, column, top);
  for (const Matrix::Row& row : matrix.rows) {
    add_text(add_titled(svg, row.title), matrix_margin, y + 18,
             shortened(row.case_id, 13.5, truth_x - matrix_margin - 10), {13.5});
    const reference::Truth weakest = *row.truths.kinds().rbegin();
    add_text(svg, truth_x, y + 18, std::string(to_string(weakest)), {12, faint});
    for (size_t i = 0; i < row.cells.size(); ++i) {
      if (row.cells[i].empty()) continue;
      const double gap = column > 20 ? 4 : 1;
      add_cell(add_titled(svg, sentences(row.cells[i])), row.cells[i].front()->finding.status,
               cells_x + static_cast<double>(i) * column + gap / 2, y + 2, column - gap, row_height - 4);
    }
    y += row_height;
  }
  y += 8;
  double x = matrix_margin;
  for (const auto& [status, count] : count_statuses(report.verdicts)) {
    const std::string label = std::string(status_name(status)) + " " + std::to_string(count);
    const double needed = 32 + text_width(label, 12) + 18;
    if (x + needed > matrix_right) {
      x = matrix_margin;
      y += 26;
    }
    add_cell(svg, status, x, y, 26, 19);
    add_text(svg, x + 32, y + 14, label, {12, faint});
    x += needed;
  }
  return y + 30;
}

double draw_throughput(pugi::xml_node svg, const std::vector<Throughput>& throughput, double top) {
  if (throughput.empty()) return top;
  constexpr double bars_x = 300;
  constexpr double bars_end = 650;
  double largest = 0.1;
  for (const Throughput& t : throughput)
    for (const double bubble : {t.bubble_measured, t.bubble_ideal})
      if (std::isfinite(bubble)) largest = std::max(largest, bubble);
  const double tick = largest > 0.5 ? 0.2 : largest > 0.2 ? 0.1 : 0.05;
  const double most = tick * std::ceil(largest / tick - 1e-9);
  const auto length = [&](double bubble) {
    return std::isfinite(bubble) ? std::max(bubble, 0.0) / most * (bars_end - bars_x) : 0.0;
  };
  add_rule(svg, matrix_margin, top + 4, matrix_right, top + 4);
  add_heading(svg, top + 36, "Bubble", 17, "share of the ranks' time without work");
  add_box(svg, bars_x + 130, top + 26, 12, 12, measured_colour, "none", 2);
  add_text(svg, bars_x + 148, top + 36, "measured", {12, faint});
  add_box(svg, bars_x + 220, top + 26, 12, 12, ideal_colour, "none", 2);
  add_text(svg, bars_x + 238, top + 36, "in theory", {12, faint});
  add_text(svg, matrix_right, top + 36, "micro-batches/s  \xc2\xb7  step / ideal", {12, faint, "end"});
  const double first = top + 56;
  const double last = first + 44 * static_cast<double>(throughput.size());
  for (double value = 0; value < most + tick / 2; value += tick) {
    const double x = bars_x + length(value);
    add_rule(svg, x, first, x, last);
    add_text(svg, x, last + 15, svg_number(100 * value, "%.0f") + " %", {11, faint, "middle"});
  }
  double y = first;
  for (const Throughput& t : throughput) {
    const std::string where = t.workload + ", " + counted(t.ranks, "rank") + " x " + std::to_string(t.microbatches);
    add_text(svg, matrix_margin, y + 19, shortened(t.schedule, 14, bars_x - matrix_margin - 16),
             {14, ink, "start", true});
    add_text(svg, matrix_margin, y + 35, shortened(where, 11.5, bars_x - matrix_margin - 8), {11.5, faint});
    add_box(svg, bars_x, y + 7, length(t.bubble_measured), 15, measured_colour, "none", 2);
    add_box(svg, bars_x, y + 24, length(t.bubble_ideal), 11, ideal_colour, "none", 2);
    add_text(svg, bars_x + length(t.bubble_measured) + 6, y + 19, figure(100 * t.bubble_measured, "%.1f") + " %",
             {12, measured_colour, "start", true});
    add_text(svg, bars_x + length(t.bubble_ideal) + 6, y + 34, figure(100 * t.bubble_ideal, "%.1f") + " %",
             {11, faint});
    add_text(svg, matrix_right, y + 19, figure(t.microbatches_per_second, "%.1f") + "/s", {13, ink, "end"});
    add_text(svg, matrix_right, y + 35, "\xc3\x97 " + figure(t.ratio_to_ideal_step, "%.3f"), {12, faint, "end"});
    y += 44;
  }
  return last + 26;
}

}  // namespace

std::string matrix_svg(const RunReport& report) {
  pugi::xml_document document;
  const pugi::xml_node svg = begin_svg(document, "plumbline conformance report");
  double y = draw_title(svg, report);
  y = draw_matrix(svg, report, y);
  y = draw_throughput(svg, report.throughput, y);
  return finished_svg(document, matrix_width, static_cast<int>(std::ceil(y + 14)));
}

}  // namespace plumbline::conformance
