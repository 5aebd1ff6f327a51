#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/gaps/gaps.h"
#include "conformance/report/svg/svg.h"
#include "runtime/text/significant.h"

namespace plumbline::bench {
namespace {

using conformance::add_element;
using conformance::svg_number;

constexpr const char* kColours[kCauses] = {"#c9d1d9", "#f5c46b", "#f08a8a", "#b79af0", "#f59f4c", "#8fb4d9"};

std::string cell(const std::string& text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

Cause largest_cause(const Gap& gap) { return static_cast<Cause>(std::ranges::max_element(gap.by) - gap.by.begin()); }

std::array<double, kCauses> idle_on_path(const Bubble& bubble) {
  std::array<double, kCauses> sums = {};
  for (const CriticalStep& step : bubble.path) {
    if (step.computes) continue;
    for (const Gap& gap : bubble.gaps)
      if (gap.rank == step.rank && gap.before == step.action) {
        // The path has the later part of the gap, which no wait for other ranks is in.
        const double part = (step.end - step.begin) / (gap.end - gap.begin);
        for (int cause = 0; cause < kCauses; ++cause) sums[cause] += part * gap.by[cause];
      }
  }
  return sums;
}

}  // namespace

std::string bubble_text(const Bubble& bubble, const std::string& unit) {
  const double step = bubble.end - bubble.begin;
  constexpr size_t kWidth = 13;
  std::string text = "rank" + cell("computes", kWidth);
  for (int cause = 0; cause < kCauses; ++cause) text += cell(cause_name(static_cast<Cause>(cause)), kWidth);
  text += cell("idle", kWidth) + "\n";
  for (size_t rank = 0; rank < bubble.computations.size(); ++rank) {
    std::array<double, kCauses> sums = {};
    double idle = 0;
    for (const Gap& gap : bubble.gaps) {
      if (gap.rank != static_cast<int>(rank)) continue;
      idle += gap.end - gap.begin;
      for (int cause = 0; cause < kCauses; ++cause) sums[cause] += gap.by[cause];
    }
    text += cell(std::to_string(rank), 4) + cell(significant(step - idle, 4) + " " + unit, kWidth);
    for (const double sum : sums) text += cell(sum > 0 ? significant(sum, 3) + " " + unit : "-", kWidth);
    text += cell(significant(100 * idle / step, 3) + " %", kWidth) + "\n";
  }
  double computes = 0;
  for (const CriticalStep& one : bubble.path) computes += one.computes ? one.end - one.begin : 0;
  text += "critical path: " + significant(step, 4) + " " + unit + ", of which " + significant(computes, 4) + " compute";
  const std::array<double, kCauses> sums = idle_on_path(bubble);
  for (int cause = 0; cause < kCauses; ++cause)
    if (sums[cause] > 0) text += ", " + significant(sums[cause], 3) + " " + cause_name(static_cast<Cause>(cause));
  return text + "\n";
}

std::string bubble_svg(const Bubble& bubble, const std::string& title, const std::string& unit) {
  constexpr int kWidth = 1200, kLeft = 80, kRight = 1176, kTop = 78, kRow = 26, kBlock = 20;
  pugi::xml_document document;
  const pugi::xml_node svg = conformance::begin_svg(document, title);
  const auto x = [&](double time) {
    return kLeft + (time - bubble.begin) / (bubble.end - bubble.begin) * (kRight - kLeft);
  };
  const auto label = [&](double at, double y, const std::string& text, const char* size) {
    add_element(svg, "text",
                {{"x", svg_number(at)}, {"y", svg_number(y)}, {"font-size", size}, {"fill", conformance::ink}}, text);
  };
  const auto block = [&](const char* kind, int rank, double begin, double end, const char* fill,
                         const std::string& hint) {
    const pugi::xml_node rect = add_element(svg, "rect",
                                            {{"class", kind},
                                             {"x", svg_number(x(begin), "%.2f")},
                                             {"y", std::to_string(kTop + rank * kRow)},
                                             {"width", svg_number(std::max(x(end) - x(begin), 0.2), "%.2f")},
                                             {"height", std::to_string(kBlock)},
                                             {"fill", fill}});
    add_element(rect, "title", {}, hint);
    return rect;
  };
  label(24, 30, title, "16");
  double at = 24;
  for (int cause = 0; cause < kCauses; ++cause) {
    add_element(svg, "rect",
                {{"x", svg_number(at)}, {"y", "44"}, {"width", "14"}, {"height", "14"}, {"fill", kColours[cause]}});
    label(at + 20, 56, cause_name(static_cast<Cause>(cause)), "13");
    at += 130;
  }
  label(at, 56, "framed: the critical path; white: computations", "13");
  for (const Gap& gap : bubble.gaps) {
    std::string hint = "idle " + significant(gap.end - gap.begin, 4) + " " + unit;
    for (int cause = 0; cause < kCauses; ++cause)
      if (gap.by[cause] > 0)
        hint += ", " + std::string(cause_name(static_cast<Cause>(cause))) + " " + significant(gap.by[cause], 3);
    block("gap", gap.rank, gap.begin, gap.end, kColours[static_cast<size_t>(largest_cause(gap))], hint);
  }
  for (size_t rank = 0; rank < bubble.computations.size(); ++rank) {
    label(24, kTop + static_cast<int>(rank) * kRow + 15, "rank " + std::to_string(rank), "13");
    for (size_t i = 0; i < bubble.computations[rank].size(); ++i) {
      const schedule::TimedAction& timed = bubble.computations[rank][i];
      pugi::xml_node rect =
          block("computation", static_cast<int>(rank), timed.begin, timed.end, "#ffffff",
                to_string(timed.action) + ", " + significant(timed.end - timed.begin, 4) + " " + unit);
      const bool critical = std::ranges::any_of(bubble.path, [&](const CriticalStep& step) {
        return step.computes && step.rank == static_cast<int>(rank) && step.action == static_cast<int>(i);
      });
      rect.append_attribute("stroke").set_value(critical ? "#a40e26" : conformance::line_colour);
      rect.append_attribute("stroke-width").set_value(critical ? "2" : "1");
    }
  }
  return conformance::finished_svg(document, kWidth, kTop + static_cast<int>(bubble.computations.size()) * kRow + 16);
}

std::string bubble_chrome_trace(const Bubble& bubble) {
  using Json = nlohmann::ordered_json;
  Json events = Json::array();
  const auto add = [&](const std::string& name, const char* category, int thread, double begin, double end,
                       Json arguments) {
    events.push_back({{"name", name},
                      {"cat", category},
                      {"ph", "X"},
                      {"pid", 0},
                      {"tid", thread},
                      {"ts", 1000 * (begin - bubble.begin)},
                      {"dur", 1000 * (end - begin)},
                      {"args", std::move(arguments)}});
  };
  const int ranks = static_cast<int>(bubble.computations.size());
  for (int rank = 0; rank <= ranks; ++rank)
    events.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", 0},
                      {"tid", rank},
                      {"args", {{"name", rank < ranks ? "rank " + std::to_string(rank) : "critical path"}}}});
  for (int rank = 0; rank < ranks; ++rank)
    for (const schedule::TimedAction& timed : bubble.computations[rank])
      add(to_string(timed.action), "computation", rank, timed.begin, timed.end, Json::object());
  for (const Gap& gap : bubble.gaps) {
    Json arguments = Json::object();
    for (int cause = 0; cause < kCauses; ++cause)
      if (gap.by[cause] > 0) arguments[std::string(cause_name(static_cast<Cause>(cause))) + ", ms"] = gap.by[cause];
    add("idle: " + std::string(cause_name(largest_cause(gap))), "idle", gap.rank, gap.begin, gap.end,
        std::move(arguments));
  }
  for (const CriticalStep& step : bubble.path)
    add(step.computes ? to_string(bubble.computations[step.rank][step.action].action) : "idle", "critical path", ranks,
        step.begin, step.end, {{"rank", step.rank}});
  return Json({{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}}).dump() + "\n";
}

}  // namespace plumbline::bench
