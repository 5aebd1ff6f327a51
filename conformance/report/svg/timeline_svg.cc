#include "conformance/report/svg/timeline_svg.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "conformance/report/svg/svg.h"
#include "runtime/error.h"

namespace plumbline::conformance {
namespace {

// Pixels.
constexpr int width = 1200;
constexpr double margin = 24;
constexpr double left = 92;  // the origin of the time axis
constexpr double right = width - margin;
constexpr double memory_height = 46;
constexpr std::size_t most_actions = 200000;

/// The frame around a group of actions.
const SvgAttributes kGroup = {{"rx", "2"}, {"fill", "none"}, {"stroke", ink}, {"stroke-width", "1.3"}};

/// For a rank's first stage and, lighter, for its later ones.
struct ActionColours {
  const char* first;
  const char* later;
  const char* text;
};

ActionColours colours_of(schedule::ActionType type) {
  switch (type) {
    case schedule::ActionType::F:
      return {"#8fbff5", "#cfe4fc", "#0a3069"};
    case schedule::ActionType::B:
      return {"#7fd09a", "#c5ecd1", "#0f4a22"};
    case schedule::ActionType::I:
      return {"#6fcfc4", "#bfebe5", "#0b4a44"};
    case schedule::ActionType::W:
      return {"#f5c46b", "#fbe4b5", "#5c3d00"};
    default:
      return {"#b6c2cf", "#d5dce3", "#1f2328"};
  }
}

std::string number(double value, const char* format = "%.5g") { return svg_number(value, format); }

void add_text(pugi::xml_node svg, double x, double y, const std::string& text, double size, const char* colour,
              const char* anchor = "start", bool bold = false) {
  pugi::xml_node element = add_element(svg, "text",
                                       {{"x", number(x, "%.2f")},
                                        {"y", number(y, "%.2f")},
                                        {"font-size", number(size)},
                                        {"fill", colour},
                                        {"text-anchor", anchor}},
                                       text);
  if (bold) element.append_attribute("font-weight").set_value("600");
}

/// A rectangle with the attributes of `look`.
pugi::xml_node add_box(pugi::xml_node svg, double x, double y, double w, double h, SvgAttributes look) {
  pugi::xml_node box = add_element(svg, "rect",
                                   {{"x", number(x, "%.2f")},
                                    {"y", number(y, "%.2f")},
                                    {"width", number(std::max(w, 0.0), "%.2f")},
                                    {"height", number(std::max(h, 0.0), "%.2f")}});
  for (const auto& [name, value] : look) box.append_attribute(name).set_value(value.c_str());
  return box;
}

/// Begin and end of a trace, and the ranks' total computation time in between.
struct Extent {
  double begin = 0, end = 0, busy = 0;
  double length() const { return end - begin; }
};

Extent extent_of(const schedule::Trace& trace) {
  Extent extent;
  bool first = true;
  for (const auto& actions : trace.ranks) {
    for (const schedule::TimedAction& timed : actions) {
      extent.begin = first ? timed.begin : std::min(extent.begin, timed.begin);
      extent.end = first ? timed.end : std::max(extent.end, timed.end);
      if (schedule::is_compute(timed.action.type)) extent.busy += timed.end - timed.begin;
      first = false;
    }
  }
  return extent;
}

/// 1, 2 or 5 times a power of ten, for about ten ticks.
double tick_of(double length) {
  if (!std::isnormal(length)) return 1;  // also if a tenth of it underflows
  const double power = std::pow(10, std::floor(std::log10(length / 10)));
  for (double step : {1.0, 2.0, 5.0}) {
    if (length / (step * power) <= 12) return step * power;
  }
  return 10 * power;
}

class Picture {
 public:
  Picture(std::span<const schedule::Trace> traces, const TimelineSvgOptions& options)
      : traces_(traces), options_(options) {
    std::size_t ranks = 1;
    for (const schedule::Trace& trace : traces) {
      extents_.push_back(extent_of(trace));
      longest_ = std::max(longest_, extents_.back().length());
      ranks = std::max(ranks, trace.ranks.size());
    }
    row_ = ranks <= 16 ? 26 : ranks <= 64 ? 14 : 6;
    if (!(longest_ > 0)) longest_ = 1;
    svg_ = begin_svg(document_, options.title);
    const pugi::xml_node hatched = add_element(svg_.insert_child_after("defs", svg_.child("title")), "pattern",
                                               {{"id", "bubble"},
                                                {"width", "6"},
                                                {"height", "6"},
                                                {"patternUnits", "userSpaceOnUse"},
                                                {"patternTransform", "rotate(45)"}});
    add_element(hatched, "rect", {{"width", "6"}, {"height", "6"}, {"fill", "#f6f8fa"}});
    add_element(hatched, "path", {{"d", "M0 0V6"}, {"stroke", line_colour}, {"stroke-width", "2"}});
  }

  std::string draw() {
    double y = draw_title();
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      y = draw_trace(i, y);
      if (i == 0 && !options_.memory.empty()) y = draw_memory(y);
    }
    return finished_svg(document_, width, static_cast<int>(std::ceil(draw_legend(y) + 12)));
  }

 private:
  double x_of(double time) const { return left + time / longest_ * (right - left); }
  std::string with_unit(const std::string& value) const {
    return options_.unit.empty() ? value : value + " " + options_.unit;
  }

  double draw_title() {
    add_text(svg_, margin, 40, options_.title, 20, ink, "start", true);
    return 54;
  }

  double draw_trace(std::size_t index, double top) {
    const schedule::Trace& trace = traces_[index];
    const Extent& extent = extents_[index];
    const auto ranks = static_cast<double>(trace.ranks.size());
    const double bubble = extent.length() > 0 ? 1 - extent.busy / (ranks * extent.length()) : 0;
    add_text(svg_, margin, top + 20, trace.name, 15, ink, "start", true);
    add_text(
        svg_, right, top + 20,
        "makespan " + with_unit(number(extent.length())) + "  \xc2\xb7  bubble " + number(100 * bubble, "%.1f") + " %",
        13, faint, "end");
    const double first = top + 30;
    const double last = first + ranks * row_;
    draw_axis(first, last);
    for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank) {
      draw_rank(trace.ranks[rank], rank, extent, first + static_cast<double>(rank) * row_);
    }
    return last + 26;
  }

  void draw_axis(double first, double last) {
    const double tick = tick_of(longest_);
    for (int i = 0; i * tick <= longest_ * (1 + 1e-9); ++i) {
      const double x = x_of(i * tick);
      add_element(svg_, "path",
                  {{"d", "M" + number(x, "%.2f") + " " + number(first, "%.2f") + "V" + number(last + 4, "%.2f")},
                   {"stroke", line_colour},
                   {"fill", "none"}});
      add_text(svg_, x, last + 16, i == 0 ? with_unit("0") : number(i * tick), 11, faint, "middle");
    }
  }

  void draw_rank(const std::vector<schedule::TimedAction>& actions, std::size_t rank, const Extent& extent,
                 double top) {
    if (row_ >= 12) {
      add_text(svg_, left - 8, top + row_ / 2 + 4, "rank " + std::to_string(rank), 12, faint, "end");
    }
    add_box(svg_, left, top + 1, x_of(extent.length()) - left, row_ - 2, {{"fill", "url(#bubble)"}});
    std::set<int> stages;
    for (const schedule::TimedAction& timed : actions) stages.insert(timed.action.stage);
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const schedule::TimedAction& timed = actions[i];
      const double from = x_of(timed.begin - extent.begin), to = x_of(timed.end - extent.begin);
      draw_block(timed, timed.action.stage != (stages.empty() ? 0 : *stages.begin()), from, to, top);
    }
    for (std::size_t i = 0; i < actions.size(); ++i) {
      std::size_t end = i;
      while (end + 1 < actions.size() && actions[end].action.overlaps_next) ++end;
      if (end == i) continue;
      const double from = x_of(actions[i].begin - extent.begin), to = x_of(actions[end].end - extent.begin);
      add_box(svg_, from + 0.5, top + 1.5, to - from - 1, row_ - 3, kGroup);
      i = end;
    }
  }

  void draw_block(const schedule::TimedAction& timed, bool later_stage, double from, double to, double top) {
    const schedule::Action& action = timed.action;
    kinds_.insert(schedule::is_compute(action.type) ? action.type : schedule::ActionType::SEND_F);
    several_stages_ = several_stages_ || later_stage;
    grouped_ = grouped_ || action.overlaps_next;
    const ActionColours colours = colours_of(action.type);
    const double low = schedule::is_compute(action.type) ? 0 : row_ * 0.35;
    const double gap = to - from > 3 ? 0.8 : 0;
    add_element(add_box(svg_, from + gap / 2, top + 1 + low, to - from - gap, row_ - 2 - 2 * low,
                        {{"fill", later_stage ? colours.later : colours.first}}),
                "title", {}, to_string(action) + ", " + number(timed.begin) + " to " + with_unit(number(timed.end)));
    if (!schedule::is_compute(action.type) || row_ < 12) return;
    const std::string label = std::to_string(action.microbatch);
    const double size = row_ > 20 ? 12 : 9;
    if (to - from < 0.62 * size * static_cast<double>(label.size()) + 3) return;
    add_text(svg_, (from + to) / 2, top + row_ / 2 + 0.36 * size, label, size, colours.text, "middle");
  }

  double draw_memory(double top) {
    double most = 0;
    for (const auto& curve : options_.memory) {
      for (const schedule::MemoryPoint& point : curve) most = std::max(most, point.bytes);
    }
    add_text(svg_, margin, top + 16, "activations held, at most " + number(most), 13, ink, "start", true);
    double y = top + 24;
    for (std::size_t rank = 0; rank < options_.memory.size(); ++rank, y += memory_height) {
      const double bottom = y + memory_height - 6;
      double peak = 0, held = 0;
      std::string path = "M" + number(left) + " " + number(bottom, "%.2f");
      for (const schedule::MemoryPoint& point : options_.memory[rank]) {
        const auto height = [&](double bytes) {
          return number(bottom - (most > 0 ? bytes / most : 0) * (memory_height - 10), "%.2f");
        };
        path += "H" + number(x_of(point.time), "%.2f") + "V" + height(point.bytes);
        peak = std::max(peak, point.bytes);
        held = point.bytes;
      }
      path += "H" + number(x_of(extents_[0].length()), "%.2f") + "V" + number(bottom, "%.2f") + "Z";
      add_element(add_element(svg_, "path", {{"d", path}, {"fill", "#ddd6f7"}, {"stroke", "#8250df"}}), "title", {},
                  "rank " + std::to_string(rank) + ": at most " + number(peak) + ", at the end " + number(held));
      add_text(svg_, left - 8, bottom - memory_height / 2 + 10, "rank " + std::to_string(rank), 12, faint, "end");
    }
    return y + 8;
  }

  double draw_legend(double top) {
    double x = left;
    const auto entry = [&](SvgAttributes look, const std::string& label) {
      const double needed = 28 + 0.58 * 12 * static_cast<double>(label.size());
      if (x + needed > right) {
        x = left;
        top += 22;
      }
      add_box(svg_, x, top, 22, 15, look);
      add_text(svg_, x + 28, top + 12, label, 12, faint);
      x += needed + 18;
    };
    const std::pair<schedule::ActionType, const char*> names[] = {{schedule::ActionType::F, "F forward"},
                                                                  {schedule::ActionType::B, "B backward"},
                                                                  {schedule::ActionType::I, "I input backward"},
                                                                  {schedule::ActionType::W, "W weight backward"},
                                                                  {schedule::ActionType::SEND_F, "communication"}};
    for (const auto& [type, label] : names) {
      if (kinds_.count(type)) entry({{"fill", colours_of(type).first}}, label);
    }
    if (several_stages_) entry({{"fill", "#cfe4fc"}, {"stroke", line_colour}}, "lighter: a later stage of the rank");
    if (grouped_) entry(kGroup, "a group, overlapped");
    entry({{"fill", "url(#bubble)"}, {"stroke", line_colour}}, "bubble");
    return top + 22;
  }

  std::span<const schedule::Trace> traces_;
  const TimelineSvgOptions& options_;
  std::vector<Extent> extents_;
  double longest_ = 0, row_ = 0;
  std::set<schedule::ActionType> kinds_;
  bool several_stages_ = false, grouped_ = false;
  pugi::xml_document document_;
  pugi::xml_node svg_;
};

}  // namespace

std::string timeline_svg(std::span<const schedule::Trace> traces, const TimelineSvgOptions& options) {
  std::size_t actions = 0;
  for (const schedule::Trace& trace : traces) {
    for (const auto& rank : trace.ranks) actions += rank.size();
  }
  if (actions > most_actions) {
    throw InputError("a picture of " + std::to_string(actions) + " actions is too large; at most " +
                     std::to_string(most_actions) + " are drawn");
  }
  return Picture(traces, options).draw();
}

}  // namespace plumbline::conformance
