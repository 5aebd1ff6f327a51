#include "bench/history/compare.h"

#include <gtest/gtest.h>

#include "bench/history/testing/sample_runs.h"
#include "runtime/error.h"
#include "runtime/testing/refusal.h"

namespace plumbline::bench {
namespace {

using testing::counted;
using testing::NoisyTimes;
using testing::sample_run;
using testing::timed;

constexpr int kSamples = 20;
const Limits limits;

Judgement compared(uint64_t seed, double factor, Better better = Better::Lower) {
  NoisyTimes noise(seed);
  const std::vector<double> before = noise.several(kSamples, 1), after = noise.several(kSamples, factor);
  return compare_timed(before, after, better, {}, limits);
}

// Both error rates of the alarm. Of 400 seeds, at most 1 % may go wrong: the significance of the rank test, which a
// delay of 5 % in noise of 1.5 % passes by far.
TEST(Compare, FivePercentAlarmAndNothingDoesNot) {
  int false_alarms = 0, misses = 0, not_told = 0;
  std::string seeds;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Change same = compared(seed, 1).change;
    false_alarms += same == Change::Regressed || same == Change::Improved;
    not_told += same == Change::CannotTell;
    if (compared(seed, 1.05).change != Change::Regressed) ++misses, seeds += " " + std::to_string(seed);
  }
  EXPECT_LE(false_alarms, 4);
  EXPECT_LE(misses, 4) << "seeds" << seeds;
  EXPECT_LE(not_told, 4);
}

TEST(Compare, DirectionAndMinimumEffect) {
  EXPECT_EQ(compared(1, 1.2).change, Change::Regressed);
  EXPECT_EQ(compared(1, 1.2, Better::Higher).change, Change::Improved);
  EXPECT_EQ(compared(1, 0.8).change, Change::Improved);
  EXPECT_EQ(compared(1, 0.8, Better::Higher).change, Change::Regressed);
  EXPECT_EQ(compared(1, 1.01).change, Change::Unchanged);
  EXPECT_NEAR(compared(1, 1.2).ratio, 1.2, 0.02);
}

TEST(Compare, TheHistorysSpreadRaisesTheMinimumEffect) {
  NoisyTimes noise(7);
  const std::vector<double> before = noise.several(kSamples, 1), after = noise.several(kSamples, 1.05);
  EXPECT_EQ(compare_timed(before, after, Better::Lower, {.spread = 0.01}, limits).change, Change::Regressed);
  EXPECT_EQ(compare_timed(before, after, Better::Lower, {.spread = 0.02}, limits).change, Change::Unchanged);
}

TEST(Compare, AChangeIsBeyondThatOfTheSteadyLoop) {
  NoisyTimes noise(8);
  const std::vector<double> before = noise.several(kSamples, 1), after = noise.several(kSamples, 1.045);
  EXPECT_EQ(compare_timed(before, after, Better::Lower, {}, limits).change, Change::Regressed);
  EXPECT_EQ(compare_timed(before, after, Better::Lower, {.machine = 0.025}, limits).change, Change::Unchanged);
  EXPECT_NEAR(probe_shift(std::vector{4.0, 5.0, 6.0}, std::vector{5.1}), 0.02, 1e-12);
  EXPECT_NEAR(probe_shift(std::vector{5.1}, std::vector{5.0}), 0.02, 1e-12);
  EXPECT_EQ(probe_shift({}, std::vector{5.0}), 0);
}

TEST(Compare, TooFewOrScatteredSamplesCannotTell) {
  const std::vector<double> four = {1, 1.01, 1.02, 1.03}, other = {2, 2.1, 2.2, 2.3};
  const Judgement few = compare_timed(four, other, Better::Lower, {}, limits);
  EXPECT_EQ(few.change, Change::CannotTell);
  EXPECT_EQ(few.reason, "too few samples: 4 and 4; 5 and 5 would do");
  const std::vector<double> wide = {1, 2, 1.1, 1.9, 1.4, 1.6}, also = {1.2, 2.2, 1.3, 2, 1.5, 1.7};
  const Judgement scattered = compare_timed(wide, also, Better::Lower, {}, limits);
  EXPECT_EQ(scattered.change, Change::CannotTell);
  EXPECT_NE(scattered.reason.find("scatter"), std::string::npos);
}

TEST(Compare, CountedFiguresAreExact) {
  const auto change = [](double before, double after, double tolerance, Better better = Better::Lower) {
    return compare_counted(std::vector<double>{before}, std::vector<double>{after}, better, tolerance).change;
  };
  EXPECT_EQ(change(1000, 1000, 0), Change::Unchanged);
  EXPECT_EQ(change(1000, 1001, 0), Change::Regressed);
  EXPECT_EQ(change(1000, 999, 0), Change::Improved);
  EXPECT_EQ(change(1000, 999, 0, Better::Higher), Change::Regressed);
  EXPECT_EQ(change(1000, 1002, 0.002), Change::Unchanged);
  EXPECT_EQ(change(1000, 1003, 0.002), Change::Regressed);
  EXPECT_EQ(change(0, 0, 0), Change::Unchanged);
  EXPECT_EQ(change(0, 1, 0.5), Change::Regressed);
  EXPECT_EQ(change(1, 0, 0), Change::Improved);
}

TEST(Compare, TheSteadyLoopSilencesTimesButNotCounters) {
  NoisyTimes noise(3);
  BenchRun before = sample_run("a", {timed(noise.several(kSamples, 1)), counted({100})});
  BenchRun after = sample_run("b", {timed(noise.several(kSamples, 1.3)), counted({101})});
  std::vector<FigureChange> changes = compare_runs({&before, 1}, {&after, 1}, limits);
  EXPECT_EQ(changes[0].judgement.change, Change::Regressed);
  EXPECT_EQ(changes[1].judgement.change, Change::Regressed);

  after.probe = {0.006, 0.00601, 0.00599};
  changes = compare_runs({&before, 1}, {&after, 1}, limits);
  EXPECT_EQ(changes[0].judgement.change, Change::CannotTell);
  EXPECT_EQ(changes[0].judgement.reason,
            "the steady loop moved by 20.0 %: the machine changed its speed; measure both again");
  EXPECT_EQ(changes[1].judgement.change, Change::Regressed);

  after.probe = {0.004, 0.0045, 0.005, 0.0055, 0.006};
  changes = compare_runs({&before, 1}, {&after, 1}, limits);
  EXPECT_EQ(changes[0].judgement.change, Change::CannotTell);
  EXPECT_NE(changes[0].judgement.reason.find("scatters by 10.0 %"), std::string::npos) << changes[0].judgement.reason;
}

TEST(Compare, RunsOfOneSideAreTakenTogether) {
  const BenchRun before[] = {sample_run("a", {timed({1, 1.001, 1.002})}),
                             sample_run("a", {timed({1.003, 1.004, 1.005})})};
  const BenchRun after[] = {sample_run("b", {timed({1.2, 1.201, 1.202})}), sample_run("b", {timed({1.203, 1.204})})};
  EXPECT_EQ(compare_runs(before, after, limits)[0].judgement.change, Change::Regressed);
  EXPECT_EQ(compare_runs({before, 1}, {after, 1}, limits)[0].judgement.change, Change::CannotTell);
}

TEST(Compare, AFigureOfOneSideIsNotForgotten) {
  const BenchRun before = sample_run("a", {timed({1, 1, 1, 1, 1}), counted({3})});
  const BenchRun after = sample_run("b", {timed({1, 1, 1, 1, 1}), timed({2}, "other")});
  const std::vector<FigureChange> changes = compare_runs({&before, 1}, {&after, 1}, limits);
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[1].figure.name, "other");
  EXPECT_EQ(changes[1].judgement.reason, "only the later run has it");
  EXPECT_EQ(changes[2].figure.name, "allocations");
  EXPECT_EQ(changes[2].judgement.change, Change::CannotTell);
  EXPECT_EQ(changes[2].judgement.reason, "only the earlier run has it");
}

TEST(Compare, OtherHardwareOrAnotherUnitIsRefused) {
  const BenchRun before = sample_run("a", {timed({1})});
  BenchRun other = before;
  other.machine.hardware = "another, 4 cores";
  EXPECT_THROW(compare_runs({&before, 1}, {&other, 1}, limits), InputError);
  other = before;
  other.benchmarks[0].figures[0].unit = "1";
  EXPECT_THROW(compare_runs({&before, 1}, {&other, 1}, limits), InputError);
  const auto refusal_of_side = [&](const BenchRun& second) {
    const BenchRun side[] = {before, second};
    const std::string alone = plumbline::testing::refusal([&] { compare_runs(side, {&before, 1}, limits); });
    EXPECT_EQ(plumbline::testing::refusal([&] { compare_runs({&before, 1}, side, limits); }), alone);
    return alone;
  };
  EXPECT_EQ(refusal_of_side(before), "accepted");
  const std::string differ = "throughput/1f1b, step: the runs differ in its unit, its kind or the better direction";
  EXPECT_EQ(refusal_of_side(other), differ);
  other = before;
  other.benchmarks[0].figures[0].kind = Kind::Counted;
  EXPECT_EQ(refusal_of_side(other), differ);
  other = before;
  other.benchmarks[0].figures[0].better = Better::Higher;
  EXPECT_EQ(refusal_of_side(other), differ);
}

}  // namespace
}  // namespace plumbline::bench
