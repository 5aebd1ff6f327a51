#include "conformance/report/matrix_svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "runtime/write_text.h"

namespace plumbline::conformance {
namespace {

// Pixels. The picture is drawn from top to bottom; each part is given its upper edge and returns its lower one.
constexpr double width = 900;
constexpr double margin = 28;
constexpr double right = width - margin;
constexpr double truth_x = 352;
constexpr double cells_x = 440;
constexpr double row_height = 27;

constexpr const char* ink = "#1f2328";
constexpr const char* faint = "#656d76";
constexpr const char* line_colour = "#d8dee4";
constexpr const char* measured_colour = "#0969da";
constexpr const char* ideal_colour = "#b6c2cf";

struct Colours {
  const char* fill;
  const char* mark;
};

Colours colours_of(Status status) {
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

std::string number(double value) {
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), "%.4g", std::isfinite(value) ? value : 0.0);
  return text.data();
}

std::string fixed(double value, int digits) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

struct TextStyle {
  double size = 13;
  const char* colour = ink;
  const char* anchor = "start";
  bool bold = false;
  double rotate = 0;
};

/// About how wide a text will be: fonts differ, so this is on the wide side.
double text_width(const std::string& text, double size) { return 0.56 * size * static_cast<double>(text.size()); }

std::string shortened(const std::string& text, double size, double room) {
  const auto fits = static_cast<size_t>(std::max(1.0, room / (0.56 * size)));
  if (text.size() <= fits) return text;
  size_t end = fits - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not inside a UTF-8 character
  return text.substr(0, end) + "\xe2\x80\xa6";
}

std::string text_at(double x, double y, const std::string& text, const TextStyle& style = {}) {
  std::string svg = "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" font-size=\"" + number(style.size) +
                    "\" fill=\"" + style.colour + "\" text-anchor=\"" + style.anchor + "\"";
  if (style.bold) svg += " font-weight=\"600\"";
  if (style.rotate != 0)
    svg += " transform=\"rotate(" + number(style.rotate) + " " + number(x) + " " + number(y) + ")\"";
  return svg + ">" + xml_escaped(text) + "</text>\n";
}

/// A heading and its explanation in one line, the second after the first however wide a font makes it.
std::string heading_at(double y, const std::string& heading, double size, const std::string& explanation) {
  return "<text x=\"" + number(margin) + "\" y=\"" + number(y) + "\" font-size=\"" + number(size) + "\" fill=\"" + ink +
         "\" font-weight=\"600\">" + heading + "<tspan dx=\"12\" font-size=\"14\" font-weight=\"400\" fill=\"" + faint +
         "\">" + explanation + "</tspan></text>\n";
}

std::string box(double x, double y, double w, double h, const char* fill, const char* stroke = "none",
                double radius = 4) {
  return "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(std::max(w, 0.0)) + "\" height=\"" +
         number(h) + "\" rx=\"" + number(radius) + "\" fill=\"" + fill + "\" stroke=\"" + stroke + "\"/>\n";
}

std::string rule(double x1, double y1, double x2, double y2) {
  return "<path d=\"M" + number(x1) + " " + number(y1) + "L" + number(x2) + " " + number(y2) + "\" stroke=\"" +
         line_colour + "\" fill=\"none\"/>\n";
}

/// A check mark, a cross, a dash or a letter: the cell can be read without its colour.
std::string mark(Status status, double x, double y) {
  const char* colour = colours_of(status).mark;
  const auto stroke = [&](const std::string& path) {
    return "<path transform=\"translate(" + number(x) + " " + number(y) + ")\" d=\"" + path + "\" stroke=\"" + colour +
           "\" stroke-width=\"2.2\" fill=\"none\" stroke-linecap=\"round\" stroke-linejoin=\"round\"/>\n";
  };
  if (status == Status::Pass) return stroke("M-5 0.5L-1.5 4L5.5 -4");
  if (status == Status::Fail) return stroke("M-4 -4L4 4M4 -4L-4 4");
  if (status == Status::Unsupported) return stroke("M-4 0L4 0");
  return text_at(x, y + 4.5, std::string(1, status_symbol(status)), {13, colour, "middle", true});
}

std::string cell(Status status, double x, double y, double w, double h) {
  return box(x, y, w, h, colours_of(status).fill, status == Status::NotRun ? line_colour : "none") +
         mark(status, x + w / 2, y + h / 2);
}

/// The parts of the context that tell where a picture comes from, as far as they are there.
std::string origin(const RunReport& report) {
  std::string line;
  for (const char* wanted : {"version", "commit", "backend", "transport", "ranks", "hardware"})
    for (const auto& [name, value] : report.context)
      if (name == wanted && !value.empty())
        line += (line.empty() ? "" : "  \xc2\xb7  ") + (name == "hardware" ? value : name + " " + value);
  return line;
}

double draw_title(std::string& svg, const RunReport& report) {
  svg += heading_at(44, "plumbline", 24, "conformance of pipeline-parallel training");
  const std::map<Status, int> counts = count_statuses(report.verdicts);
  const auto passed = counts.find(Status::Pass);
  const int pass_count = passed == counts.end() ? 0 : passed->second;
  const int code = exit_code(report);
  const Status overall = code == 0 ? Status::Pass : code == 1 ? Status::Fail : Status::NotRun;
  // What a schedule cannot do is no result; it stands apart.
  const auto found = counts.find(Status::Unsupported);
  const int unsupported = found == counts.end() ? 0 : found->second;
  const std::string summary = std::to_string(pass_count) + " of " +
                              std::to_string(static_cast<int>(report.verdicts.size()) - unsupported) + " pass" +
                              (unsupported == 0 ? "" : ", " + std::to_string(unsupported) + " unsupported");
  const double pill = 1.15 * text_width(summary, 15) + 48;
  svg += box(right - pill, 24, pill, 28, colours_of(overall).fill, code == 3 ? line_colour : "none", 14);
  svg += mark(overall, right - pill + 20, 38);
  svg += text_at(right - 16, 43, summary, {15, colours_of(overall).mark, "end", true});
  const std::string line = origin(report);
  if (line.empty()) return 62;
  svg += text_at(margin, 70, shortened(line, 12, right - margin), {12, faint});
  return 80;
}

double draw_headings(std::string& svg, const Matrix& matrix, double column, double top) {
  double longest = 0;
  for (const std::string& schedule : matrix.schedules) longest = std::max(longest, text_width(schedule, 13));
  const bool upright = longest + 8 <= column;
  const double bottom = top + (upright ? 34 : 20 + 0.64 * longest);  // leaning by 40 degrees
  svg += text_at(margin, bottom - 10, "case", {12, faint});
  svg += text_at(truth_x, bottom - 10, "truth", {12, faint});
  for (size_t i = 0; i < matrix.schedules.size(); ++i) {
    const double x = cells_x + (static_cast<double>(i) + 0.5) * column;
    svg += upright ? text_at(x, bottom - 10, matrix.schedules[i], {13, ink, "middle", true})
                   : text_at(x - 2, bottom - 8, matrix.schedules[i], {13, ink, "start", true, -40});
  }
  svg += rule(margin, bottom, right, bottom);
  return bottom + 4;
}

/// What a cell stands for, a line each: all of the worst, of the others what and where they are.
std::string sentences(const std::vector<const CaseVerdict*>& verdicts) {
  std::string text = sentence(*verdicts.front());
  for (size_t i = 1; i < verdicts.size(); ++i)
    text += "\nalso " + std::string(status_name(verdicts[i]->status)) + " (" + place_of(*verdicts[i]) + ")";
  return text;
}

double draw_matrix(std::string& svg, const RunReport& report, double top) {
  const Matrix matrix = matrix_of(report.verdicts);
  if (matrix.rows.empty()) return top;
  // Leaning headings need room to the right of the last column.
  const double room = right - cells_x - (matrix.schedules.size() > 4 ? 60 : 0);
  const double column = std::min(216.0, room / static_cast<double>(matrix.schedules.size()));
  double y = draw_headings(svg, matrix, column, top);
  for (const Matrix::Row& row : matrix.rows) {
    svg += "<g><title>" + xml_escaped(row.title) + "</title>" +
           text_at(margin, y + 18, shortened(row.case_id, 13.5, truth_x - margin - 10), {13.5}) + "</g>\n";
    svg += text_at(truth_x, y + 18, std::string(to_string(row.truth)), {12, faint});
    for (size_t i = 0; i < row.cells.size(); ++i) {
      if (row.cells[i].empty()) continue;
      const double gap = column > 20 ? 4 : 1;
      svg += "<g><title>" + xml_escaped(sentences(row.cells[i])) + "</title>\n" +
             cell(row.cells[i].front()->status, cells_x + static_cast<double>(i) * column + gap / 2, y + 2,
                  column - gap, row_height - 4) +
             "</g>\n";
    }
    y += row_height;
  }
  y += 8;
  double x = margin;
  for (const auto& [status, count] : count_statuses(report.verdicts)) {
    const std::string label = std::string(status_name(status)) + " " + std::to_string(count);
    const double needed = 32 + text_width(label, 12) + 18;
    if (x + needed > right) {
      x = margin;
      y += 26;
    }
    svg += cell(status, x, y, 26, 19) + text_at(x + 32, y + 14, label, {12, faint});
    x += needed;
  }
  return y + 30;
}

double draw_throughput(std::string& svg, const std::vector<Throughput>& throughput, double top) {
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
  svg += rule(margin, top + 4, right, top + 4);
  svg += heading_at(top + 36, "Bubble", 17, "share of the ranks' time without work");
  svg += box(bars_x + 130, top + 26, 12, 12, measured_colour, "none", 2);
  svg += text_at(bars_x + 148, top + 36, "measured", {12, faint});
  svg += box(bars_x + 220, top + 26, 12, 12, ideal_colour, "none", 2);
  svg += text_at(bars_x + 238, top + 36, "in theory", {12, faint});
  svg += text_at(right, top + 36, "micro-batches/s  \xc2\xb7  step / ideal", {12, faint, "end"});
  const double first = top + 56;
  const double last = first + 44 * static_cast<double>(throughput.size());
  for (double value = 0; value < most + tick / 2; value += tick) {
    const double x = bars_x + length(value);
    svg += rule(x, first, x, last);
    svg += text_at(x, last + 15, fixed(100 * value, 0) + " %", {11, faint, "middle"});
  }
  double y = first;
  for (const Throughput& t : throughput) {
    const std::string where = t.workload + ", " + std::to_string(t.ranks) + (t.ranks == 1 ? " rank x " : " ranks x ") +
                              std::to_string(t.microbatches);
    svg += text_at(margin, y + 19, shortened(t.schedule, 14, bars_x - margin - 16), {14, ink, "start", true});
    svg += text_at(margin, y + 35, shortened(where, 11.5, bars_x - margin - 8), {11.5, faint});
    svg += box(bars_x, y + 7, length(t.bubble_measured), 15, measured_colour, "none", 2);
    svg += box(bars_x, y + 24, length(t.bubble_ideal), 11, ideal_colour, "none", 2);
    svg += text_at(bars_x + length(t.bubble_measured) + 6, y + 19, fixed(100 * t.bubble_measured, 1) + " %",
                   {12, measured_colour, "start", true});
    svg += text_at(bars_x + length(t.bubble_ideal) + 6, y + 34, fixed(100 * t.bubble_ideal, 1) + " %", {11, faint});
    svg += text_at(right, y + 19, fixed(t.microbatches_per_second, 1) + "/s", {13, ink, "end"});
    svg += text_at(right, y + 35, "\xc3\x97 " + fixed(t.ratio_to_ideal_step, 3), {12, faint, "end"});
    y += 44;
  }
  return last + 26;
}

}  // namespace

std::string matrix_svg(const RunReport& report) {
  std::string body;
  double y = draw_title(body, report);
  y = draw_matrix(body, report, y);
  y = draw_throughput(body, report.throughput, y);
  const double height = std::ceil(y + 14);
  const std::string size = number(width) + "\" height=\"" + number(height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + size + "\" viewBox=\"0 0 " + number(width) + " " +
         number(height) +
         "\" font-family=\"-apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, 'DejaVu Sans', sans-serif\" "
         "role=\"img\">\n<title>plumbline conformance report</title>\n" +
         box(0.5, 0.5, width - 1, height - 1, "#ffffff", line_colour, 8) + body + "</svg>\n";
}

}  // namespace plumbline::conformance
