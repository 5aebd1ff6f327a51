#include <algorithm>
#include <cmath>

#include "bench/history/changes.h"
#include "bench/page/trends_page.h"
#include "conformance/report/svg/svg.h"
#include "runtime/text/xml_text.h"

namespace plumbline::bench {
namespace {

using conformance::svg_number;

constexpr int kWidth = 260, kHeight = 44, kMargin = 4;

/// The middle half of a figure's samples in one run.
struct Spread {
  double low, high;
};

Spread spread_of(const BenchRun& run, const Trend& trend) {
  const auto benchmark = std::ranges::find(run.benchmarks, trend.benchmark, &Benchmark::name);
  std::vector<double> samples = std::ranges::find(benchmark->figures, trend.figure.name, &Figure::name)->samples;
  std::sort(samples.begin(), samples.end());
  return {samples[samples.size() / 4], samples[samples.size() - 1 - samples.size() / 4]};
}

std::string point(double x, double y) { return svg_number(x, "%.1f") + "," + svg_number(y, "%.1f") + " "; }

}  // namespace

std::string trend_svg(std::span<const BenchRun> history, const Trend& trend) {
  std::vector<Spread> spreads;
  for (const TrendPoint& one : trend.points) spreads.push_back(spread_of(history[one.run], trend));
  double low = spreads[0].low, high = spreads[0].high;
  for (const Spread& spread : spreads) low = std::min(low, spread.low), high = std::max(high, spread.high);
  const double slack =
      std::max({(high - low) * 0.05, std::abs(high) * 0.02, 1e-12});  // noise does not fill the picture
  low -= slack, high += slack;
  const auto last = static_cast<double>(std::max<size_t>(trend.points.size() - 1, 1));
  const auto x = [&](size_t i) { return kMargin + static_cast<double>(i) * (kWidth - 2 * kMargin) / last; };
  const auto y = [&](double value) { return kMargin + (high - value) / (high - low) * (kHeight - 2 * kMargin); };
  std::string line, upper, lower, circles, marks;
  for (size_t i = 0; i < trend.points.size(); ++i) {
    const TrendPoint& one = trend.points[i];
    const BenchRun& run = history[one.run];
    line += point(x(i), y(one.value));
    upper += point(x(i), y(spreads[i].high));
    lower.insert(0, point(x(i), y(spreads[i].low)));
    circles += "<circle cx=\"" + svg_number(x(i), "%.1f") + "\" cy=\"" + svg_number(y(one.value), "%.1f") +
               "\" r=\"2.2\"" + (one.steady ? "" : " class=\"unsteady\"") + "><title>" +
               xml_escaped(value_text(one.value, trend.figure.unit) + ", " + run.commit + ", " +
                           run.date.substr(0, 10) + (one.steady ? "" : ", not steady")) +
               "</title></circle>";
    for (const ChangePoint& change : trend.changes) {
      if (change.run != one.run) continue;
      const std::string at = svg_number(x(i), "%.1f");
      marks += "<line x1=\"" + at + "\" x2=\"" + at + "\" y1=\"0\" y2=\"" + std::to_string(kHeight) + "\"" +
               (change.judgement.change == Change::Improved ? " class=\"improvement\"" : "") + "/>";
    }
  }
  return "<svg class=\"trend\" role=\"img\" aria-label=\"" + xml_escaped(trend.benchmark + " " + trend.figure.name) +
         "\" width=\"" + std::to_string(kWidth) + "\" height=\"" + std::to_string(kHeight) + "\"><polygon points=\"" +
         upper + lower + "\"/>" + marks + "<polyline points=\"" + line + "\"/>" + circles + "</svg>";
}

}  // namespace plumbline::bench
