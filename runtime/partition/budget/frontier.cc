#include "runtime/partition/budget/frontier.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "runtime/partition/budget/budget.h"
#include "runtime/partition/budget/memory.h"

namespace plumbline::partition {
namespace {

/// Partitions one graph by any budget and prices the result.
class Pricer {
 public:
  Pricer(const JointGraph& graph, const Policy& policy, PartitionOptions options)
      : graph_(graph), policy_(policy), options_(std::move(options)) {
    options_.mode = PartitionMode::Budget;
  }

  BudgetPoint at(double budget) {
    options_.budget = budget;
    const Partition made = partition(graph_, policy_, options_);
    const MemoryProfile memory = simulate_memory(made);
    BudgetPoint point{.budget = budget,
                      .saved_bytes = memory.saved_nodes,
                      .saved_storage = memory.saved_storage,
                      .peak = memory.peak,
                      .saved = made.saved};
    point.saved.insert(point.saved.end(), made.saved_symbols.begin(), made.saved_symbols.end());
    for (NodeIndex node : made.recomputed())
      if (made.graph.nodes[node].kind == JointKind::Call)
        point.recomputation += recomputation_cost(made.graph.nodes[node]);
    return point;
  }

 private:
  const JointGraph& graph_;
  const Policy& policy_;
  PartitionOptions options_;
};

bool has_budget(const JointNode& node) { return node.memory_budget.has_value(); }

template <class... Values>
std::string format(const char* pattern, Values... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

}  // namespace

std::vector<BudgetPoint> budget_frontier(const JointGraph& graph, const Policy& policy, PartitionOptions options) {
  if (std::ranges::any_of(graph.nodes, &has_budget)) {
    JointGraph without = graph;
    for (JointNode& node : without.nodes) node.memory_budget.reset();
    return budget_frontier(without, policy, std::move(options));
  }
  constexpr double kResolution = 1e-3;
  Pricer pricer(graph, policy, std::move(options));
  std::vector<BudgetPoint> points{pricer.at(0)};
  // Points right of `left` that are still to be explored, the nearest on top; everything up to `left` is found.
  std::vector<BudgetPoint> right{pricer.at(1)};
  double left = 0;
  while (!right.empty()) {
    const double budget = right.back().budget;
    const bool same = right.back().saved_storage == points.back().saved_storage &&
                      right.back().recomputation == points.back().recomputation;
    if (!same && budget - left >= kResolution) {
      right.push_back(pricer.at((left + budget) / 2));
      continue;
    }
    if (!same) points.push_back(std::move(right.back()));
    right.pop_back();
    left = budget;
  }
  return points;
}

std::string frontier_text(std::span<const BudgetPoint> points) {
  std::string text =
      format("%8s %16s %16s %16s %16s\n", "budget", "saved bytes", "new storage", "peak", "recomputation");
  for (const BudgetPoint& point : points)
    text +=
        format("%8.4f %16lld %16lld %16lld %16.6g\n", point.budget, static_cast<long long>(point.saved_bytes),
               static_cast<long long>(point.saved_storage), static_cast<long long>(point.peak), point.recomputation);
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
  text((kLeft + kRight) / 2, kBottom + 40, "middle", "bytes saved in addition to the inputs");
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

}  // namespace plumbline::partition
