// Which schedules are measured, and what a failure is reported as. How long anything takes is not looked at.
#include "conformance/run/throughput.h"

#include <gtest/gtest.h>

#include "runtime/io/temporary_folder.h"

namespace plumbline::conformance {
namespace {

/// Models of 8 stages.
class EightStages : public ModelFacts {
 public:
  int most_stages(const std::string&, reference::Dtype) override { return 8; }
  bool has_buffers(const reference::Case&) override { return false; }
  void require_loss(const reference::Case&) override {}
  std::vector<schedule::StageEdge> edges(const reference::Case&, int) override { return {}; }
  std::string why_not_partitioned(const reference::Case&, int, const engine::RematOptions&) override { return {}; }
};

TEST(Throughput, WhatCannotBeMeasuredIsLeftOutWithItsReason) {
  const JobThroughput workloads[] = {{.forward_ms = 1, .backward_ms = 1, .microbatches = 8, .steps = 1},
                                     {.model = "m", .rows = 8, .microbatches = 8, .steps = 1}};
  const std::vector<ChosenSchedule> schedules = {
      {"gpipe", ""}, {"zb-v", ""}, {"forward-only", ""}, {kOwnSchedule, ""}, {"mine.csv", "0F0,0B0"}};
  EightStages models;
  std::vector<std::string> left_out, items;
  for (const JobThroughput& item : measurements(workloads, schedules, 8, models, left_out))
    items.push_back(item.schedule + " " + item.model);
  EXPECT_EQ(items, (std::vector<std::string>{"gpipe ", "gpipe m", "zb-v "}));
  ASSERT_EQ(left_out.size(), 7u);
  EXPECT_EQ(left_out[0], "schedule zb-v: has 16 stages; m has 8 at most");
  EXPECT_EQ(left_out[1], "schedule forward-only: has no backward; training is measured");
  EXPECT_NE(left_out[3].find("own"), std::string::npos) << left_out[3];
  EXPECT_EQ(left_out[5], "schedule mine.csv: only named schedules are measured");
}

/// Reports these events, and ends so.
class Scripted : public Backend {
 public:
  Scripted(std::vector<JobEvent> events, JobResult result) : events_(std::move(events)), result_(std::move(result)) {}
  std::string name() const override { return "scripted"; }
  BackendDescription describe() const override { return {}; }
  std::vector<std::optional<PlanAnswer>> plan(const Job&, const std::filesystem::path&) const override { return {}; }
  JobResult run(const Job&, const std::filesystem::path&, const OnEvent& on_event) const override {
    for (const JobEvent& event : events_) on_event(event);
    return result_;
  }

 private:
  std::vector<JobEvent> events_;
  JobResult result_;
};

TEST(Throughput, AFailureNamesItsMeasurement) {
  const TemporaryFolder folder;
  const Job job{.ranks = 2, .throughput = {{.schedule = "gpipe", .steps = 1}, {.schedule = "1f1b", .steps = 1}}};
  const auto failed = [&](std::vector<JobEvent> events, bool succeeded) {
    const JobResult result{.succeeded = succeeded, .ending = "exited with code 3"};
    return measure_throughput(Scripted(std::move(events), result), job, folder.path()).failed;
  };
  EXPECT_EQ(failed({}, false), "measuring on scripted failed: exited with code 3");
  EXPECT_EQ(failed({{.throughput = true, .index = 1}}, false), "the measurement of 1f1b failed: exited with code 3");
  const std::string unread = failed({{.throughput = true, .index = 0, .done = true}}, true);
  EXPECT_TRUE(unread.starts_with("the measurement of gpipe failed: no measurement from rank 0")) << unread;
}

}  // namespace
}  // namespace plumbline::conformance
