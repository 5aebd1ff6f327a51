#include "runtime/partition/frontier.h"

#include <algorithm>
#include <cstdio>

namespace plumbline {
namespace {

int storage_of(const JointNode& node) { return node.out.kind == JointResult::Kind::Tensor ? node.out.storage : -1; }

int64_t storage_bytes(const JointGraph& graph, const std::vector<NodeIndex>& saved) {
  std::vector<char> counted(graph.storage_bytes.size(), 0);
  for (const JointNode& node : graph.nodes)
    if (node.is_input() && storage_of(node) >= 0) counted[storage_of(node)] = 1;
  int64_t sum = 0;
  for (NodeIndex node : saved) {
    const int storage = storage_of(graph.nodes[node]);
    if (storage < 0 || counted[storage]) continue;
    counted[storage] = 1;
    sum += graph.storage_bytes[storage];
  }
  return sum;
}

BudgetPoint point_at(const CutInput& input, const PartitionOptions& options, BudgetPlanner& planner, double budget) {
  std::vector<CutRecord> cuts;
  BudgetPoint point{.budget = budget, .saved = planner.saved(budget, cuts)};
  for (NodeIndex node : point.saved) point.saved_bytes += cut_bytes(input.graph.nodes[node]);
  point.saved_storage = storage_bytes(input.graph, point.saved);
  for (NodeIndex node : computed_again(input, point.saved))
    if (input.graph.nodes[node].kind == JointKind::Call) point.recomputation += runtime_of(input, options, node);
  return point;
}

template <class... Values>
std::string format(const char* pattern, Values... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

}  // namespace

std::vector<BudgetPoint> budget_frontier(const CutInput& input, const PartitionOptions& options) {
  constexpr double kResolution = 1e-3;
  BudgetPlanner planner(input, options);
  std::vector<BudgetPoint> points{point_at(input, options, planner, 0)};
  // What lies right of `left` and is not looked through yet, the nearest on top; up to `left` all is found.
  std::vector<BudgetPoint> right{point_at(input, options, planner, 1)};
  double left = 0;
  while (!right.empty()) {
    const double budget = right.back().budget;
    const bool same = right.back().saved == points.back().saved;
    if (!same && budget - left >= kResolution) {
      right.push_back(point_at(input, options, planner, (left + budget) / 2));
      continue;
    }
    if (!same) points.push_back(std::move(right.back()));
    right.pop_back();
    left = budget;
  }
  return points;
}

std::vector<NodeIndex> computed_again(const CutInput& input, std::span<const NodeIndex> saved) {
  const JointGraph& graph = input.graph;
  std::vector<char> is_saved(graph.nodes.size(), 0), needed(graph.nodes.size(), 0);
  for (NodeIndex node : saved) is_saved[node] = 1;
  for (NodeIndex node : graph.backward_outputs())
    if (node != kNoNode) needed[node] = 1;
  std::vector<NodeIndex> again;
  for (auto i = static_cast<NodeIndex>(graph.nodes.size()); i-- > 0;) {
    if (!needed[i] || is_saved[i] || graph.nodes[i].is_input()) continue;
    for (NodeIndex read : input.edges.inputs(i)) needed[read] = 1;
    if (input.classes.required_forward[i]) again.push_back(i);
  }
  std::reverse(again.begin(), again.end());
  return again;
}

std::string frontier_text(std::span<const BudgetPoint> points) {
  std::string text = format("%8s %16s %16s %16s\n", "budget", "saved bytes", "new storage", "recomputation");
  for (const BudgetPoint& point : points)
    text += format("%8.4f %16lld %16lld %16.6g\n", point.budget, static_cast<long long>(point.saved_bytes),
                   static_cast<long long>(point.saved_storage), point.recomputation);
  return text;
}

std::string frontier_svg(std::span<const BudgetPoint> points) {
  constexpr double kWidth = 640, kHeight = 400, kLeft = 90, kTop = 30, kRight = 610, kBottom = 340;
  double most_bytes = 1, most_runtime = 1;
  for (const BudgetPoint& point : points) {
    most_bytes = std::max(most_bytes, static_cast<double>(point.saved_storage));
    most_runtime = std::max(most_runtime, point.recomputation);
  }
  const auto x = [&](const BudgetPoint& p) {
    return kLeft + (kRight - kLeft) * static_cast<double>(p.saved_storage) / most_bytes;
  };
  const auto y = [&](const BudgetPoint& p) { return kBottom - (kBottom - kTop) * p.recomputation / most_runtime; };

  std::string svg = format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<path d=\"M%g %gV%gH%g\" fill=\"none\" stroke=\"#888\"/>\n",
      kWidth, kHeight, kLeft, kTop, kBottom, kRight);
  const auto text = [&](double at_x, double at_y, const char* anchor, const std::string& words) {
    svg += format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", at_x, at_y, anchor, words.c_str());
  };
  text(kLeft, 18, "middle", "recomputation");
  text(kLeft - 8, kTop + 4, "end", format("%.4g", most_runtime));
  text(kLeft - 8, kBottom, "end", "0");
  text((kLeft + kRight) / 2, kBottom + 40, "middle", "bytes saved beside the inputs");
  text(kRight, kBottom + 18, "end", format("%.6g", most_bytes));
  text(kLeft, kBottom + 18, "middle", "0");
  std::string line;
  for (const BudgetPoint& point : points) line += format("%s%.1f %.1f", line.empty() ? "M" : "L", x(point), y(point));
  svg += "<path d=\"" + line + "\" fill=\"none\" stroke=\"#1f6f8b\"/>\n";
  for (const BudgetPoint& point : points) {
    svg += format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"#1f6f8b\"/>\n", x(point), y(point));
    text(x(point) + 5, y(point) - 5, "start", format("%.3g", point.budget));
  }
  return svg + "</svg>\n";
}

}  // namespace plumbline
