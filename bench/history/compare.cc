#include "bench/history/compare.h"

#include <algorithm>
#include <cmath>

#include "bench/history/rank_test.h"
#include "runtime/error.h"
#include "runtime/median.h"
#include "runtime/text/significant.h"

namespace plumbline::bench {
namespace {

constexpr double kSpreads = 3;  ///< a change must be this many times the history's own spread

std::vector<double> vector_of(std::span<const double> values) { return {values.begin(), values.end()}; }

/// Of a factor between two values: how far apart they are, whichever is larger.
double effect_of(double ratio) { return std::max(ratio, 1 / ratio) - 1; }

Change direction(double ratio, Better better) {
  return (ratio > 1) == (better == Better::Lower) ? Change::Regressed : Change::Improved;
}

struct Pooled {
  std::string benchmark;
  Figure figure;
};

/// The figures of several runs, each once, with the samples of all of them.
std::vector<Pooled> pooled(std::span<const BenchRun> runs) {
  std::vector<Pooled> all;
  for (const BenchRun& run : runs)
    for (const Benchmark& benchmark : run.benchmarks)
      for (const Figure& figure : benchmark.figures) {
        const auto same = std::ranges::find_if(
            all, [&](const Pooled& one) { return one.benchmark == benchmark.name && one.figure.name == figure.name; });
        if (same == all.end()) {
          all.push_back({benchmark.name, figure});
          continue;
        }
        expect_same_quantity(benchmark.name, same->figure, figure);
        same->figure.samples.insert(same->figure.samples.end(), figure.samples.begin(), figure.samples.end());
      }
  return all;
}

std::vector<double> probes_of(std::span<const BenchRun> runs) {
  std::vector<double> all;
  for (const BenchRun& run : runs) all.insert(all.end(), run.probe.begin(), run.probe.end());
  return all;
}

void expect_same_hardware(std::span<const BenchRun> before, std::span<const BenchRun> after) {
  for (const std::span<const BenchRun> side : {before, after})
    for (const BenchRun& run : side)
      if (run.machine.hardware != before[0].machine.hardware)
        throw InputError("runs of different hardware are not compared: '" + before[0].machine.hardware + "' and '" +
                         run.machine.hardware + "'");
}

Judgement judge(const Pooled& before, const Pooled& after, double machine, const std::string& moved,
                const Limits& limits) {
  const Figure &a = before.figure, &b = after.figure;
  expect_same_quantity(after.benchmark, a, b);
  if (b.kind == Kind::Counted) return compare_counted(a.samples, b.samples, b.better, b.tolerance);
  Judgement judgement = compare_timed(a.samples, b.samples, b.better, {.machine = machine}, limits);
  if (!moved.empty()) judgement.change = Change::CannotTell, judgement.reason = moved;
  return judgement;
}

}  // namespace

const char* change_name(Change change) {
  switch (change) {
    case Change::Regressed:
      return "regressed";
    case Change::Improved:
      return "improved";
    case Change::Unchanged:
      return "unchanged";
    case Change::CannotTell:
      return "cannot tell";
  }
  return "";
}

void expect_same_quantity(const std::string& benchmark, const Figure& a, const Figure& b) {
  if (a.unit != b.unit || a.kind != b.kind || a.better != b.better)
    throw InputError(benchmark + ", " + b.name + ": the runs differ in its unit, its kind or the better direction");
}

Judgement compare_timed(std::span<const double> before, std::span<const double> after, Better better,
                        const Noise& noise, const Limits& limits) {
  const RatioInterval factor = ratio_interval(before, after, limits.significance);
  Judgement judgement{.before = median(vector_of(before)), .after = median(vector_of(after)), .ratio = factor.ratio};
  const double least = (1 + std::max(limits.effect, kSpreads * noise.spread)) * (1 + noise.machine) - 1;
  if (!std::isfinite(factor.high)) {
    judgement.change = Change::CannotTell;
    judgement.reason = "too few samples: " + std::to_string(before.size()) + " and " + std::to_string(after.size()) +
                       "; 5 and 5 would do";
    return judgement;
  }
  const bool certain = rank_test(before, after) <= limits.significance;
  if (certain && effect_of(factor.ratio) >= least) {
    judgement.change = direction(factor.ratio, better);
  } else if (!certain && std::max(effect_of(factor.low), effect_of(factor.high)) > least) {
    judgement.change = Change::CannotTell;
    judgement.reason = "the samples scatter too much; measure again with more repetitions";
  }
  return judgement;
}

Judgement compare_counted(std::span<const double> before, std::span<const double> after, Better better,
                          double tolerance) {
  Judgement judgement{.before = median(vector_of(before)), .after = median(vector_of(after))};
  if (judgement.before == judgement.after) return judgement;
  judgement.ratio = judgement.before > 0 ? judgement.after / judgement.before : HUGE_VAL;
  if (std::abs(judgement.after - judgement.before) > tolerance * judgement.before)
    judgement.change = direction(judgement.ratio, better);
  return judgement;
}

double probe_shift(std::span<const double> before, std::span<const double> after) {
  if (before.empty() || after.empty()) return 0;
  return effect_of(median(vector_of(after)) / median(vector_of(before)));
}

std::string probe_moved(std::span<const double> before, std::span<const double> after, const Limits& limits) {
  if (before.empty() || after.empty()) return {};
  const std::vector<double> a = vector_of(before), b = vector_of(after);
  if (const double by = probe_shift(before, after); by > limits.probe)
    return "the steady loop moved by " + percent(by) + ": the machine changed its speed; measure both again";
  if (const double by = std::max(relative_deviation(a), relative_deviation(b)); by > limits.probe)
    return "the steady loop scatters by " + percent(by) + ": the machine is busy; measure both again";
  return {};
}

std::vector<FigureChange> compare_runs(std::span<const BenchRun> before, std::span<const BenchRun> after,
                                       const Limits& limits) {
  PLUMBLINE_CHECK(!before.empty() && !after.empty(), "two sides with runs are compared");
  expect_same_hardware(before, after);
  const std::vector<double> probe_before = probes_of(before), probe_after = probes_of(after);
  const double machine = probe_shift(probe_before, probe_after);
  const std::string moved = probe_moved(probe_before, probe_after, limits);
  std::vector<Pooled> earlier = pooled(before);
  std::vector<FigureChange> changes;
  for (const Pooled& one : pooled(after)) {
    const auto same = std::ranges::find_if(earlier, [&](const Pooled& other) {
      return other.benchmark == one.benchmark && other.figure.name == one.figure.name;
    });
    FigureChange change{one.benchmark, one.figure, {}};
    if (same == earlier.end()) {
      const double now = median(one.figure.samples);
      change.judgement = {
          .change = Change::CannotTell, .before = now, .after = now, .reason = "only the later run has it"};
    } else {
      change.judgement = judge(*same, one, machine, moved, limits);
      earlier.erase(same);
    }
    changes.push_back(std::move(change));
  }
  for (const Pooled& one : earlier) {
    const double then = median(one.figure.samples);
    changes.push_back(
        {one.benchmark,
         one.figure,
         {.change = Change::CannotTell, .before = then, .after = then, .reason = "only the earlier run has it"}});
  }
  return changes;
}

}  // namespace plumbline::bench
