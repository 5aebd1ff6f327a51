// Histories with planted changes: found at their commit, and nothing is found where nothing changed.
#include "bench/history/trend.h"

#include <gtest/gtest.h>

#include <functional>

#include "bench/history/testing/sample_runs.h"

namespace plumbline::bench {
namespace {

using testing::counted;
using testing::NoisyTimes;
using testing::sample_run;
using testing::timed;

constexpr int kRuns = 30, kRecent = 7;

/// Nightly runs of ten samples. Each launch is off by up to 1 % by itself, as real ones are.
std::vector<BenchRun> history(uint64_t seed, const std::function<double(int)>& level, int runs = kRuns) {
  NoisyTimes noise(seed), launches(seed + 1'000'000);
  std::vector<BenchRun> made;
  for (int run = 0; run < runs; ++run) {
    const double launch = 1 + std::min(0.01, (launches.one(1) - 1) / 2);
    made.push_back(sample_run("commit" + std::to_string(run), {timed(noise.several(10, level(run) * launch))}));
  }
  return made;
}

Trend only(const std::vector<BenchRun>& runs, int recent = kRecent) {
  const std::vector<Trend> found = trends(runs, {}, recent);
  EXPECT_EQ(found.size(), 1u);
  return found.at(0);
}

// Of 200 histories, at most 2 % may name another run than the planted one, or a second one.
TEST(Trend, APlantedRegressionIsFoundAtItsCommit) {
  int wrong = 0;
  std::string seeds;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const int planted = 24 + static_cast<int>(seed % 4);
    const std::vector<BenchRun> runs = history(seed, [&](int run) { return run < planted ? 1 : 1.06; });
    const Trend trend = only(runs);
    const bool found = trend.changes.size() == 1 && trend.now.change == Change::Regressed && trend.since &&
                       runs[trend.since->run].commit == "commit" + std::to_string(planted) &&
                       trend.since->runs == kRuns - planted;
    if (!found) ++wrong, seeds += " " + std::to_string(seed);
  }
  EXPECT_LE(wrong, 4) << "seeds" << seeds;
}

TEST(Trend, NothingIsFoundWhereNothingChanged) {
  int alarms = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) alarms += !only(history(seed, [](int) { return 1; })).changes.empty();
  EXPECT_LE(alarms, 2);
}

TEST(Trend, AnImprovementAfterARegressionAndWhatIsOldDoesNotAlarm) {
  const auto level = [](int run) { return run < 8 ? 1.0 : run < 20 ? 1.2 : 0.9; };
  Trend trend = only(history(1, level));
  ASSERT_EQ(trend.changes.size(), 2u);
  EXPECT_EQ(trend.changes[0].run, 8u);
  EXPECT_EQ(trend.changes[0].runs, 12);
  EXPECT_EQ(trend.changes[1].run, 20u);
  EXPECT_EQ(trend.now.change, Change::Unchanged);  // ten runs ago
  EXPECT_FALSE(trend.since);
  trend = only(history(1, level), 10);
  EXPECT_EQ(trend.now.change, Change::Improved);
  EXPECT_EQ(only(history(1, level, 21)).now.change, Change::Improved);
}

TEST(Trend, ASlowDriftAddsUp) {
  const Trend trend = only(history(5, [](int run) { return 1 + 0.004 * run; }));
  ASSERT_FALSE(trend.changes.empty());
  EXPECT_EQ(trend.changes[0].judgement.change, Change::Regressed);
}

TEST(Trend, OneBadNightIsAnOutlierAndTheLastOneAsksForARepetition) {
  const auto bad = [](int run) { return run == 12 ? 1.3 : 1.0; };
  EXPECT_TRUE(only(history(2, bad)).changes.empty());
  const std::vector<BenchRun> runs = history(2, bad, 13);
  const std::vector<FigureChange> changes = changes_of(trends(runs, {}, kRecent), runs);
  EXPECT_EQ(changes.at(0).judgement.change, Change::Regressed);
  ASSERT_TRUE(changes[0].since);
  EXPECT_EQ(changes[0].since->commit, "commit12");
  EXPECT_FALSE(changes[0].since->confirmed);
}

TEST(Trend, ASlowerMachineIsNoRegression) {
  const auto level = [](int run) { return run < 29 ? 1.0 : 1.045; };
  std::vector<BenchRun> runs = history(3, level);
  EXPECT_EQ(only(runs).now.change, Change::Regressed);
  for (double& time : runs.back().probe) time *= 1.025;
  EXPECT_EQ(only(runs).now.change, Change::Unchanged);
}

TEST(Trend, ABusyMachineSaysNothingAboutTimes) {
  std::vector<BenchRun> runs = history(3, [](int run) { return run < 20 ? 1.0 : 1.3; }, 21);
  runs[20].probe = {0.0065, 0.0065, 0.0066};
  const Trend trend = only(runs);
  EXPECT_EQ(trend.now.change, Change::CannotTell);
  EXPECT_NE(trend.now.reason.find("the steady loop moved by 30"), std::string::npos) << trend.now.reason;
  EXPECT_FALSE(trend.points[20].steady);
  EXPECT_TRUE(trend.points[19].steady);
}

TEST(Trend, CountersAlarmAtOnceAlsoOnABusyMachine) {
  std::vector<BenchRun> runs;
  for (int run = 0; run < 6; ++run)
    runs.push_back(sample_run("c" + std::to_string(run), {counted({run < 4 ? 17. : 18.})}));
  for (BenchRun& run : runs) run.probe = {0.005, 0.009, 0.005, 0.012, 0.007};
  const std::vector<FigureChange> changes = changes_of(trends(runs, {}, kRecent), runs);
  EXPECT_EQ(changes.at(0).judgement.change, Change::Regressed);
  ASSERT_TRUE(changes[0].since);
  EXPECT_EQ(changes[0].since->commit, "c4");
  EXPECT_TRUE(changes[0].since->confirmed);
  EXPECT_EQ(changes[0].since->runs, 2);
}

TEST(Trend, ACounterThatWobblesDriftsOnlyBeyondItsTolerance) {
  std::vector<BenchRun> runs;
  for (const double count : {100000., 100100., 99950., 100150., 100150.})
    runs.push_back(sample_run("c", {counted({count}, 0.002)}));
  EXPECT_TRUE(only(runs).changes.empty());
  runs.push_back(sample_run("late", {counted({100400}, 0.002)}));
  EXPECT_EQ(only(runs).changes.size(), 1u);
}

TEST(Trend, OtherHardwareAndAFirstRunDoNotCount) {
  std::vector<BenchRun> runs = history(4, [](int) { return 1; }, 5);
  runs.back().machine.hardware = "another";
  const Trend trend = only(runs);
  EXPECT_EQ(trend.points.size(), 1u);
  EXPECT_EQ(trend.now.change, Change::CannotTell);
  EXPECT_EQ(trend.now.reason, "measured once so far");
}

}  // namespace
}  // namespace plumbline::bench
