#include "bench/gaps/step_times.h"

#include <gtest/gtest.h>

#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/io/write_file.h"
#include "runtime/testing/refusal.h"

namespace plumbline::bench {
namespace {

std::string header(int rank, int ranks) {
  return "{\"schema\": \"plumbline-times/1\", \"rank\": " + std::to_string(rank) +
         ", \"ranks\": " + std::to_string(ranks) + "}\n";
}

TEST(StepTimes, AreReadInMilliseconds) {
  const TemporaryFolder folder;
  // The last step of rank 1 is not there yet.
  write_file(folder / "rank0.jsonl", header(0, 2) + R"([["0F0", 1.5, 1.75], ["0B0", 3, 3.5]])"
                                                    "\n"
                                                    R"([["0F0", 4, 5]])"
                                                    "\n"
                                                    R"([["0F0", 9, 9]])"
                                                    "\n");
  write_file(folder / "rank1.jsonl", header(1, 2) + R"([["1F0", 2, 2.5], ["1I0", 2.5, 2.625], ["1W0", 2.75, 2.875]])"
                                                    "\n[]\n");
  const std::vector<schedule::Trace> steps = read_step_times(folder.path());
  ASSERT_EQ(steps.size(), 2u);
  ASSERT_EQ(steps[0].ranks.size(), 2u);
  std::string text;
  for (const auto& rank : steps[0].ranks)
    for (const schedule::TimedAction& timed : rank)
      text += to_string(timed.action) + " " + std::to_string(timed.begin) + " " + std::to_string(timed.end) + "\n";
  EXPECT_EQ(text,
            "0F0 1500.000000 1750.000000\n0B0 3000.000000 3500.000000\n1F0 2000.000000 2500.000000\n"
            "1I0 2500.000000 2625.000000\n1W0 2750.000000 2875.000000\n");
  EXPECT_EQ(length_of(steps[0]), 2000);
  EXPECT_EQ(length_of(steps[1]), 1000);
  EXPECT_EQ(length_of({"none", {{}, {}}}), 0);
}

TEST(StepTimes, TheStepOfMedianLengthIsFound) {
  std::vector<schedule::Trace> steps;
  for (const double length : {9.0, 2.0, 4.0, 3.0})
    steps.push_back({"s", {{{{0, schedule::ActionType::F, 0}, 1, 1 + length}}}});
  EXPECT_EQ(median_step(steps), 3u);
  steps.push_back(steps[0]);
  EXPECT_EQ(median_step(steps), 2u);
  for (int evaluation = 0; evaluation < 5; ++evaluation) steps.push_back({"none", {{}}});
  EXPECT_EQ(median_step(steps), 2u);
}

TEST(StepTimes, AnythingElseIsRefused) {
  const std::pair<std::string, std::string> rows[] = {
      {"", "t: is empty; expected the times that plumbline_times.py writes"},
      {"{", "t:1 is not JSON"},
      {"[]\n", "t:1: "},
      {"{\"schema\": \"plumbline-times/2\", \"rank\": 0, \"ranks\": 1}", "t:1: schema: expected "},
      {"{\"schema\": \"plumbline-times/1\", \"rank\": 1, \"ranks\": 1}", "t:1: rank: expected "},
      {"{\"schema\": \"plumbline-times/1\", \"rank\": 0, \"ranks\": 4097}", "t:1: ranks: expected "},
      {header(0, 1) + "[[\"0F0\", 1, 2]", "t:2 is not JSON"},
      {header(0, 1) + "[[\"0F0\", 1]]", "t:2: [0]: expected "},
      {header(0, 1) + "[[\"0SEND_F0\", 1, 2]]", "t:2: [0][0]: expected a computation such as \"0F2\""},
      {header(0, 1) + "[[\"F0\", 1, 2]]", "t:2: [0][0]: expected a computation such as \"0F2\""},
      {header(0, 1) + "[[\"0F0\", \"1\", 2]]", "t:2: [0][1]: expected a number of seconds"},
      {header(0, 1) + "[[\"0F0\", 1, 1e999]]", "t:2"},
      {header(0, 1) + "[[\"0F0\", 2, 1]]", "t:2: [0][2]: is before the time that precedes it"},
      {header(0, 1) + "[]\n[[\"0F0\", 1, 3], [\"0B0\", 2, 4]]", "t:3: [1][1]: is before the time that precedes it"},
      {header(0, 1) + "[[\"0F0\", 1, 2], [\"0F0\", 2, 3]]", "t:2: [1][0]: is there a second time in this step"},
  };
  for (const auto& [text, expected] : rows)
    testing::expect_line(testing::refusal([&, &text = text] { parse_rank_times(text, "t"); }), expected);

  const TemporaryFolder folder;
  const auto read = [&] { return testing::refusal([&] { read_step_times(folder.path()); }); };
  EXPECT_NE(read().find("rank0.jsonl"), std::string::npos) << read();
  write_file(folder / "rank0.jsonl", header(0, 2));
  EXPECT_NE(read().find("rank1.jsonl"), std::string::npos) << read();
  write_file(folder / "rank1.jsonl", header(0, 2));
  EXPECT_NE(read().find("rank1.jsonl: is of rank 0 of 2; expected rank 1 of 2"), std::string::npos) << read();
  write_file(folder / "rank1.jsonl", header(1, 3));
  EXPECT_NE(read().find("rank1.jsonl: is of rank 1 of 3; expected rank 1 of 2"), std::string::npos) << read();
  const std::string none = ": no step with a computation that all ranks have; step_done() ends one";
  write_file(folder / "rank1.jsonl", header(1, 2) + "[]\n");
  EXPECT_NE(read().find(none), std::string::npos) << read();
  write_file(folder / "rank0.jsonl", header(0, 2) + "[]\n[[\"0F1\", 1, 2]]\n");
  EXPECT_NE(read().find(none), std::string::npos) << read();
  write_file(folder / "rank1.jsonl", header(1, 2) + "[]\n[[\"0F0\", 1, 2], [\"0F1\", 2, 3]]\n");
  EXPECT_NE(read().find(": step 1: ranks 0 and 1 both have 0F1; record each replica"), std::string::npos) << read();
}

}  // namespace
}  // namespace plumbline::bench
