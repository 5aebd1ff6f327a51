#include "conformance/protocol/schedule/schedule_source.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/testing/refusal.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;

class ScheduleSource : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_ / "folder.csv");
    write("mine.csv", "0F0,0F1,0B0,0B1\r\n1F0,1B0,1F1,1B1\r\n");
  }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }

  static std::string refusal(const std::string& source, const schedule::ScheduleRequest& request) {
    return testing::refusal([&] { load_schedule(source, request); });
  }

  const TemporaryFolder folder_;
};

schedule::ScheduleRequest size(int ranks, int microbatches) {
  return {.name = {}, .ranks = ranks, .microbatches = microbatches};
}

TEST_F(ScheduleSource, NamesAndFiles) {
  EXPECT_EQ(load_schedule("zb-h1", size(3, 5)), schedule::make_schedule("zb-h1", 3, 5));
  EXPECT_EQ(load_schedule("ZB-H1", size(3, 5)), schedule::make_schedule("zb-h1", 3, 5));
  for (const schedule::ScheduleRequest& request : {size(0, 0), size(2, 0), size(0, 2), size(2, 2)}) {
    const schedule::Schedule mine = load_schedule(at("mine.csv"), request);
    EXPECT_EQ(schedule::to_csv(mine), "0F0,0F1,0B0,0B1\r\n1F0,1B0,1F1,1B1\r\n");
    EXPECT_EQ(mine.name, at("mine.csv"));
  }
  schedule::ScheduleRequest one_stage = size(0, 0);
  one_stage.stages_per_rank = 1;
  EXPECT_EQ(load_schedule(at("mine.csv"), one_stage).stages, 2);
}

TEST_F(ScheduleSource, RefusesInOneLineThatNamesTheFile) {
  write("damaged.csv", "0F0,0X0\r\n");
  write("notes.txt", "0F0\r\n");
  schedule::ScheduleRequest two_stages = size(0, 0), grouped = size(0, 0), sliced = size(0, 0), timed = size(0, 0);
  two_stages.stages_per_rank = 2;
  grouped.group_size = 2;
  sliced.slices = 2;
  timed.durations = schedule::Durations{};
  const struct {
    std::string source;
    schedule::ScheduleRequest request;
    std::string expected;
  } rows[] = {
      {"nonesuch", size(2, 2), "gpipe"},
      {"zb-h1", size(0, 2), "0 ranks"},
      {"zb-h1", size(2, 0), "0 micro-batches"},
      {at("nowhere.csv"), size(2, 2), "nowhere.csv: No such file"},
      {at("folder.csv"), size(2, 2), "folder.csv: it is a folder; expected a file or a pipe"},
      {folder_.path().string(), size(2, 2), "expected a file that ends in .csv"},
      {at("notes.txt"), size(2, 2), "expected a file that ends in .csv"},
      {"nowhere.json", size(2, 2), "expected a file that ends in .csv"},
      {at("damaged.csv"), size(0, 0), "damaged.csv: row 1 (rank 0), cell 2"},
      {at("mine.csv"), size(3, 0), "2 ranks, not 3 as requested"},
      {at("mine.csv"), size(0, 5), "2 micro-batches, not 5"},
      {at("mine.csv"), two_stages, "1 stages on rank 0, not 2"},
      {at("mine.csv"), grouped, "group size"},
      {at("mine.csv"), sliced, "slices"},
      {at("mine.csv"), timed, "durations"},
  };
  for (const auto& row : rows) {
    const std::string what = refusal(row.source, row.request);
    EXPECT_NE(what.find(row.expected), std::string::npos) << row.source << ": '" << what << "'";
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace plumbline::conformance
