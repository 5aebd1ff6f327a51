// Predictions worked out by hand.
#include "conformance/backend/predicted_trace.h"

#include <gtest/gtest.h>

namespace plumbline::conformance {
namespace {

std::string text(const schedule::Trace& trace) {
  std::string out;
  for (const std::vector<schedule::TimedAction>& rank : trace.ranks) {
    for (const schedule::TimedAction& timed : rank)
      out += to_string(timed.action) + " " + std::to_string(static_cast<int>(timed.begin)) + "-" +
             std::to_string(static_cast<int>(timed.end)) + "  ";
    out += "| ";
  }
  return out;
}

schedule::TimedAction timed(const char* action, double begin, double end) {
  return {schedule::parse_action(action), begin, end};
}

TEST(PredictedTrace, OfAModelTakesTheMeansOfWhatWasMeasured) {
  const JobThroughput item{.schedule = "gpipe", .model = "mlp", .microbatches = 2};
  const schedule::Trace measured{
      "measured",
      {{timed("0F0", 0, 1), timed("0SEND_F0", 1, 90), timed("0F1", 10, 13), timed("0B0", 100, 104),
        timed("0B1", 120, 124)},
       {timed("1F0", 20, 23), timed("1F1", 23, 26), timed("1B0", 30, 35), timed("1B1", 35, 40)}}};
  // Stage 0: F 2 (of 1 and 3), B 4; stage 1: F 3, B 5; transfers count nothing.
  const schedule::Trace predicted = predicted_trace(item, measured);
  EXPECT_EQ(predicted.name, "predicted");
  EXPECT_EQ(text(predicted), "0F0 0-2  0F1 2-4  0B0 13-17  0B1 18-22  | 1F0 2-5  1F1 5-8  1B0 8-13  1B1 13-18  | ");
}

TEST(PredictedTrace, OfSleepingStagesTakesWhatTheyWereAskedToSleep) {
  schedule::Trace measured;
  measured.ranks.resize(2);
  JobThroughput item{.schedule = "gpipe", .forward_ms = 4, .backward_ms = 8, .microbatches = 1};
  EXPECT_EQ(text(predicted_trace(item, measured)), "0F0 0-4  0B0 16-24  | 1F0 4-8  1B0 8-16  | ");
  // Two stages on each rank share its time; stage 0 sends no gradient, and does all of its backward in its W.
  item.schedule = "zb-v";
  EXPECT_EQ(text(predicted_trace(item, measured)),
            "0F0 0-2  3F0 6-8  3I0 8-10  3W0 10-12  0I0 16-16  0W0 16-20  | 1F0 2-4  2F0 4-6  2I0 10-12  2W0 12-14  "
            "1I0 14-16  1W0 16-18  | ");
}

}  // namespace
}  // namespace plumbline::conformance
