#include "bench/history/trend.h"

#include <algorithm>
#include <map>

#include "runtime/median.h"

namespace plumbline::bench {
namespace {

constexpr size_t kReference = 10;  ///< runs of a level that later ones are compared with
constexpr size_t kForSpread = 3;   ///< runs from which on their medians have a spread

/// A judged point of a figure: the run that has it, its samples, and the run's times of the steady loop.
struct Measured {
  size_t run;
  std::vector<double> samples;
  std::span<const double> probe;
};

/// The first runs of a level: what later ones are compared with.
class Reference {
 public:
  explicit Reference(const Measured& first) { add(first); }

  void add(const Measured& measured) {
    if (medians_.size() == kReference) return;
    samples_.insert(samples_.end(), measured.samples.begin(), measured.samples.end());
    medians_.push_back(median(measured.samples));
    probe_.insert(probe_.end(), measured.probe.begin(), measured.probe.end());
  }

  Judgement against(const Measured& measured, const Figure& figure, const Limits& limits) const {
    if (figure.kind == Kind::Counted)
      return compare_counted(samples_, measured.samples, figure.better, figure.tolerance);
    const double spread = medians_.size() < kForSpread ? 0 : relative_deviation(medians_);
    const Noise noise{.spread = spread, .machine = probe_shift(probe_, measured.probe)};
    return compare_timed(samples_, measured.samples, figure.better, noise, limits);
  }

 private:
  std::vector<double> samples_, medians_, probe_;
};

bool changed(const Judgement& judgement) {
  return judgement.change == Change::Regressed || judgement.change == Change::Improved;
}

/// Fills trend.changes, and returns the last judgement, which is CannotTell if the last point was compared in vain.
Judgement find_changes(const std::vector<Measured>& series, const Limits& limits, Trend& trend) {
  Judgement last{.before = median(series[0].samples), .after = median(series[0].samples)};
  Reference reference(series[0]);
  int runs = 1;
  for (size_t i = 1; i < series.size(); ++i) {
    last = reference.against(series[i], trend.figure, limits);
    ++runs;
    if (!changed(last)) {
      reference.add(series[i]);
      continue;
    }
    // A counter has no outliers: it is the same until the code changes.
    const bool stays = trend.figure.kind == Kind::Counted || i + 1 == series.size() ||
                       reference.against(series[i + 1], trend.figure, limits).change == last.change;
    if (!stays) continue;
    if (!trend.changes.empty()) trend.changes.back().runs = runs - 1;
    trend.changes.push_back({series[i].run, last, 1});
    reference = Reference(series[i]);
    runs = 1;
  }
  if (!trend.changes.empty()) trend.changes.back().runs = runs;
  return last;
}

double reference_probe(std::span<const BenchRun> history, const std::vector<size_t>& runs) {
  std::vector<double> medians;
  for (const size_t run : runs)
    if (!history[run].probe.empty()) medians.push_back(median(history[run].probe));
  return medians.empty() ? 0 : median(medians);
}

void judge(const std::vector<Measured>& steady, const std::string& why_not_steady, const Limits& limits, int recent,
           Trend& trend) {
  if (!steady.empty()) trend.now = find_changes(steady, limits, trend);
  if (!trend.points.back().steady) {
    trend.now.change = Change::CannotTell;
    trend.now.before = steady.empty() ? trend.points.back().value : trend.now.before;
    trend.now.after = trend.points.back().value;
    trend.now.ratio = trend.now.after / trend.now.before;
    trend.now.reason = why_not_steady;
    return;
  }
  if (trend.points.size() == 1 || steady.size() == 1) {
    trend.now.change = Change::CannotTell;
    trend.now.reason = "measured once so far";
    return;
  }
  if (trend.changes.empty()) return;
  const ChangePoint& latest = trend.changes.back();
  if (latest.runs > recent) return;
  // Also where the last run alone cannot tell: the level before it is the last thing that is known.
  trend.now = latest.judgement;
  trend.since = latest;
}

}  // namespace

std::vector<Trend> trends(std::span<const BenchRun> history, const Limits& limits, int recent) {
  std::vector<size_t> same_hardware;
  for (size_t run = 0; run < history.size(); ++run)
    if (history[run].machine.hardware == history.back().machine.hardware) same_hardware.push_back(run);
  const double probe = reference_probe(history, same_hardware);
  struct Series {
    Trend trend;
    std::vector<Measured> steady;
    std::string why_not_steady;  ///< of the last point
    size_t seen = 0;             ///< larger for the figure that was seen later
  };
  std::map<std::pair<std::string, std::string>, Series> all;
  size_t seen = 0;
  for (const size_t run : same_hardware) {
    const std::string why_not = probe > 0 ? probe_moved({&probe, 1}, history[run].probe, limits) : "";
    for (const Benchmark& benchmark : history[run].benchmarks)
      for (const Figure& figure : benchmark.figures) {
        Series& series = all[{benchmark.name, figure.name}];
        Trend& trend = series.trend;
        if (!trend.points.empty()) expect_same_quantity(benchmark.name, trend.figure, figure);
        trend.benchmark = benchmark.name;
        trend.figure = figure;
        const bool steady = figure.kind == Kind::Counted || why_not.empty();
        trend.points.push_back({run, median(figure.samples), steady});
        series.why_not_steady = why_not;
        series.seen = ++seen;
        if (steady) series.steady.push_back({run, figure.samples, history[run].probe});
      }
  }
  std::vector<Series*> in_order;
  for (auto& [name, series] : all) in_order.push_back(&series);
  std::ranges::sort(in_order, {}, &Series::seen);
  std::vector<Trend> found;
  for (Series* series : in_order) {
    judge(series->steady, series->why_not_steady, limits, recent, series->trend);
    found.push_back(std::move(series->trend));
  }
  return found;
}

std::vector<FigureChange> changes_of(const std::vector<Trend>& trends, std::span<const BenchRun> history) {
  std::vector<FigureChange> changes;
  for (const Trend& trend : trends) {
    changes.push_back({trend.benchmark, trend.figure, trend.now});
    if (!trend.since) continue;
    const BenchRun& first = history[trend.since->run];
    changes.back().since = Since{.commit = first.commit,
                                 .date = first.date,
                                 .runs = trend.since->runs,
                                 .confirmed = trend.figure.kind == Kind::Counted || trend.since->runs > 1};
  }
  return changes;
}

}  // namespace plumbline::bench
