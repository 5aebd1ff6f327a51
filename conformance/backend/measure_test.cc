// That a measurement leaves a trace of all its ranks on one clock. How long anything takes is not looked at.
#include "conformance/backend/measure.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/backend/runtime.h"
#include "conformance/run/throughput.h"
#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"

namespace plumbline::conformance {
namespace {

TEST(Measure, ATraceOfTheLastStepIsReadBack) {
  const TemporaryFolder folder;
  const std::filesystem::path& out = folder.path();
  Job job{.ranks = 2,
          .throughput = {{.schedule = "gpipe", .forward_ms = 1, .backward_ms = 1, .microbatches = 2, .steps = 2}}};
  JobThroughput& item = job.throughput.front();
  ThroughputRun run = measure_throughput(Runtime(), job, out);
  EXPECT_EQ(run.measured.at(0).timeline, "");
  EXPECT_EQ(run.measured.at(0).rank_times.size(), 2u);
  EXPECT_THROW(measured_traces(item, 0, 2, out), Error);  // none was asked for
  EXPECT_THROW(measured_traces(item, 1, 2, out), Error);  // no such measurement
  item.trace = true;
  run = measure_throughput(Runtime(), job, out);
  EXPECT_EQ(run.failed, "");
  EXPECT_NE(run.measured.at(0).timeline.find("stages that sleep 1/1 ms"), std::string::npos);
  const std::vector<schedule::Trace> traces = measured_traces(item, 0, 2, out);
  EXPECT_EQ(traces.at(0).name, "predicted");
  const schedule::Trace& trace = traces.at(1);
  ASSERT_EQ(trace.ranks.size(), 2u);
  std::vector<std::vector<schedule::TimedAction>> computed(2);
  for (size_t rank = 0; rank < 2; ++rank)
    for (const schedule::TimedAction& timed : trace.ranks[rank]) {
      EXPECT_LE(timed.begin, timed.end);
      EXPECT_GE(timed.begin, 0);
      if (schedule::is_compute(timed.action.type)) computed[rank].push_back(timed);
    }
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(computed[rank].size(), 4u);
    const char* kinds[] = {"F0", "F1", "B0", "B1"};
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(to_string(computed[rank][i].action), std::to_string(rank) + kinds[i]);
  }
  EXPECT_EQ(std::min(trace.ranks[0].front().begin, trace.ranks[1].front().begin), 0) << "whichever was first";
  EXPECT_GE(computed[1][0].begin, computed[0][0].end) << "stage 1 begins with what stage 0 made";
  EXPECT_GE(computed[0][2].begin, computed[1][2].end);
}

}  // namespace
}  // namespace plumbline::conformance
