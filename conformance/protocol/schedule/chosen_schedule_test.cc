#include "conformance/protocol/schedule/chosen_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/testing/refusal.h"

namespace plumbline::conformance {
namespace {

std::vector<std::string> names(const std::vector<ChosenSchedule>& chosen) {
  std::vector<std::string> out;
  for (const ChosenSchedule& one : chosen) out.push_back(one.name);
  return out;
}

class ChosenSchedules : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  const TemporaryFolder folder_;
};

TEST_F(ChosenSchedules, PatternsInTheOrderOfTheTableEachOnce) {
  EXPECT_EQ(names(choose_schedules("*")), schedule::schedule_names());
  EXPECT_EQ(names(choose_schedules("zb-h*,1f1b,zb-h1")), (std::vector<std::string>{"1f1b", "zb-h1", "zb-h2"}));
  for (const char* wrong : {"", "nonesuch", "1f1b,nonesuch", ","})
    EXPECT_NE(testing::refusal([&] { choose_schedules(wrong); }).find("expected one of gpipe, 1f1b"), std::string::npos)
        << wrong;
}

TEST_F(ChosenSchedules, AFileIsReadOnceAndHasFixedNumbers) {
  const std::string v = "0F0,3F0,0F1,3F1,3B0,0B0,3B1,0B1\n1F0,2F0,1F1,2F1,2B0,1B0,2B1,1B1\n";
  const std::string path = write("v.csv", v);
  const std::vector<ChosenSchedule> chosen = choose_schedules("gpipe," + path);
  ASSERT_EQ(names(chosen), (std::vector<std::string>{"gpipe", path}));
  std::filesystem::remove(path);  // the choice contains the text, not the path
  const schedule::Schedule schedule = make_schedule(chosen[1], 2, 2);
  EXPECT_EQ(schedule.stages, 4);
  EXPECT_EQ(schedule.rank_of_stage, (std::vector<int>{0, 1, 1, 0}));
  EXPECT_EQ(make_schedule(chosen[0], 3, 5), schedule::make_schedule("gpipe", 3, 5));
  EXPECT_NE(testing::refusal([&] { make_schedule(chosen[1], 4, 2); }).find("it has 2 ranks, not 4"), std::string::npos);
  EXPECT_NE(testing::refusal([&] { make_schedule(chosen[1], 2, 8); }).find("it has 2 micro-batches, not 8"),
            std::string::npos);
}

TEST_F(ChosenSchedules, WithAGivenNumberOfStages) {
  EXPECT_EQ(schedule_over_stages({"1f1b", ""}, 4, 0, 3), schedule::make_schedule("1f1b", 4, 3));
  EXPECT_EQ(schedule_over_stages({"1f1b", ""}, 4, 4, 3), schedule::make_schedule("1f1b", 4, 3));
  EXPECT_NE(
      testing::refusal([&] { schedule_over_stages({"1f1b", ""}, 4, 2, 3); }).find("it cannot have 4 stages on 2 ranks"),
      std::string::npos);
  const ChosenSchedule v{"v.csv", "0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n"};
  EXPECT_EQ(schedule_over_stages(v, 4, 0, 1).ranks.size(), 2u);
  EXPECT_EQ(schedule_over_stages(v, 4, 2, 1).stages, 4);
  EXPECT_NE(testing::refusal([&] { schedule_over_stages(v, 2, 0, 1); }).find("cannot have 2 stages"),
            std::string::npos);
  EXPECT_NE(testing::refusal([&] { schedule_over_stages(v, 4, 4, 1); }).find("it has 2 ranks, not 4"),
            std::string::npos);
}

TEST_F(ChosenSchedules, RefusesMalformedFiles) {
  const auto refused = [&](const std::string& text) {
    const std::string path = write("x.csv", text);
    return testing::refusal([&] { choose_schedules(path); });
  };
  EXPECT_NE(refused("").find("there are no rows"), std::string::npos);
  EXPECT_NE(refused("0F0,0X0\n").find("0X0"), std::string::npos);
  EXPECT_NE(refused("0B0,0F0\n").find("x.csv"), std::string::npos);  // never runs
  EXPECT_EQ(refused("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"), "accepted");
  EXPECT_EQ(refused("0F0,0F1\n1F0,1F1\n"), "accepted");  // forward only
  EXPECT_NE(testing::refusal([&] { choose_schedules("nowhere.csv"); }).find("nowhere.csv"), std::string::npos);
  std::filesystem::create_directories(folder_ / "other");
  const std::string one = write("same.csv", "0F0,0B0\n"), two = write("other/same.csv", "0F0,0B0\n");
  EXPECT_NE(testing::refusal([&] { choose_schedules(one + "," + two); }).find("two files are named same.csv"),
            std::string::npos);
}

}  // namespace
}  // namespace plumbline::conformance
