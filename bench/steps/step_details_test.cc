// Percentiles, shares and the simulated step from files of ranks that the test writes. The expected numbers are those
// of GPipe by hand: (M + P - 1)(F + B), and M activations at once on each rank.
#include "bench/steps/step_details.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "conformance/protocol/report_folder.h"
#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/io/write_file.h"

namespace plumbline::bench {
namespace {

using Json = nlohmann::json;

const conformance::JobThroughput kGpipe{.schedule = "gpipe", .model = "m", .rows = 2, .microbatches = 2, .steps = 20};

/// Steps of 10, 11, ..., 29 s of rank 0; rank 1 begins and ends 0.5 s later.
Json rank_file(int rank) {
  Json steps = Json::array();
  for (int i = 0; i < 20; ++i) {
    const double begin = 100 * i + 0.5 * rank;
    steps.push_back({{"begin", begin}, {"end", begin + 10 + i}, {"busy", 6}, {"waiting", 2}, {"posting", 1}});
  }
  return {{"steps", steps},
          {"durations", Json::array({{{"stage", rank}, {"type", "F"}, {"median", 1}},
                                     {{"stage", rank}, {"type", "B"}, {"median", 2}}})},
          {"memory",
           {{"peak", 300 + rank},
            {"gradients", 50},
            {"activations", Json::array({{{"stage", rank}, {"bytes", 100 + 10 * rank}}})}}},
          {"cores", Json::array({rank})}};
}

class StepDetailsTest : public ::testing::Test {
 protected:
  void write(const std::function<void(int, Json&)>& change = {}) {
    for (int rank = 0; rank < 2; ++rank) {
      Json file = rank_file(rank);
      if (change) change(rank, file);
      std::filesystem::create_directories(conformance::throughput_path(folder_.path(), 0, rank).parent_path());
      write_file(conformance::throughput_path(folder_.path(), 0, rank), file.dump());
    }
  }
  StepDetails read() const { return read_step_details(kGpipe, 0, 2, folder_.path()); }

  TemporaryFolder folder_;
};

TEST_F(StepDetailsTest, AStepLastsFromTheFirstBeginToTheLastEnd) {
  write();
  const StepDetails details = read();
  EXPECT_DOUBLE_EQ(details.p50, 20);    // of 10.5, 11.5, ..., 29.5
  EXPECT_DOUBLE_EQ(details.p95, 28.5);  // 19 of 20 are at most this
  EXPECT_DOUBLE_EQ(details.simulated, 9);
  EXPECT_DOUBLE_EQ(details.efficiency(), 9.0 / 20);
  ASSERT_EQ(details.ranks.size(), 2u);
  EXPECT_NEAR(details.ranks[1].busy, 6, 1e-12);
  EXPECT_NEAR(details.ranks[1].waiting, 2, 1e-12);
  EXPECT_NEAR(details.ranks[1].posting, 1, 1e-12);
  EXPECT_NEAR(details.ranks[1].rest, 19.5 - 9, 1e-9);  // the mean step of a rank is 19.5 s
}

TEST_F(StepDetailsTest, ThePlannedPeakIsThatOfTheSchedule) {
  write();
  const StepDetails details = read();
  EXPECT_EQ(details.ranks[0].peak, 300);
  EXPECT_EQ(details.ranks[0].planned_peak, 2 * 100 + 50);
  EXPECT_EQ(details.ranks[1].planned_peak, 2 * 110 + 50);
  write([](int, Json& file) { file["memory"] = nullptr; });
  EXPECT_FALSE(read().ranks[0].planned_peak);
}

TEST_F(StepDetailsTest, TheSimulationUsesEachStagesDurations) {
  write([](int rank, Json& file) {
    if (rank == 1) file["durations"][0]["median"] = 5;  // F of stage 1
  });
  EXPECT_DOUBLE_EQ(read().simulated, 1 + 2 * 5 + 2 * 2 + 2);  // F0, then stage 1 without a pause, then B0 of the last
}

TEST_F(StepDetailsTest, AMissingFileOrMemberIsNamed) {
  EXPECT_THROW(read(), Error);
  write([](int rank, Json& file) {
    if (rank == 1) file.erase("durations");
  });
  try {
    read();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("durations"), std::string::npos) << error.what();
  }
}

TEST_F(StepDetailsTest, PinnedRanksAreNamedWithTheirCores) {
  write();
  EXPECT_EQ(cores_text(read(), 2, 0.25),
            "rank 0 on core 0, 1 on 1; other processes took 25 % of the cores meanwhile\n");
  write([](int, Json& file) { file["cores"] = {0, 1}; });
  EXPECT_EQ(cores_text(read(), 2, 0),
            "2 ranks on 2 cores, not pinned; other processes took 0 % of the cores meanwhile\n");
}

}  // namespace
}  // namespace plumbline::bench
