#include "runtime/schedule/csv.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/error.h"

namespace plumbline {
namespace {

using enum ActionType;

std::string message_of(std::string_view text) {
  try {
    parse_csv(text, "s.csv");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Csv, WritesPythonsExcelDialect) {
  const Schedule schedule{"s", 2, 2, {0, 1}, {{{0, F, 0}, {0, F, 1}, {0, SEND_F, 1}, {0, B, 0}}, {{1, F, 0}}}};
  EXPECT_EQ(to_csv(schedule), "0F0,0F1,0SEND_F1,0B0\r\n1F0\r\n");
}

TEST(Csv, DerivesStagesMicrobatchesAndPlacement) {
  const Schedule schedule = parse_csv("0F0,3F0,3F1,0F1\r\n1F0,2F0,2F1,1F1,1SEND_F2\r\n", "v");
  EXPECT_EQ(schedule.name, "v");
  EXPECT_EQ(schedule.stages, 4);
  EXPECT_EQ(schedule.microbatches, 2) << "a communication action does not make a micro-batch";
  EXPECT_EQ(schedule.rank_of_stage, (std::vector<int>{0, 1, 1, 0}));
  ASSERT_EQ(schedule.ranks.size(), 2u);
  EXPECT_EQ(schedule.ranks[0], (std::vector<Action>{{0, F, 0}, {3, F, 0}, {3, F, 1}, {0, F, 1}}));
  EXPECT_EQ(schedule.ranks[1], (std::vector<Action>{{1, F, 0}, {2, F, 0}, {2, F, 1}, {1, F, 1}, {1, SEND_F, 2}}));
}

TEST(Csv, ReadsWhatOtherWritersWrite) {
  const Schedule plain = parse_csv("0F0,0B0\r\n1F0,1B0\r\n", "s");
  EXPECT_EQ(parse_csv("0F0,0B0\n1F0,1B0\n", "s"), plain) << "LF";
  EXPECT_EQ(parse_csv("0F0,0B0\n1F0,1B0", "s"), plain) << "no end of the last line";
  EXPECT_EQ(parse_csv("0F0,,,0B0,\r\n,1F0,1B0\r\n", "s"), plain) << "PyTorch's bubbles";
  EXPECT_EQ(parse_csv("0F0, 0B0\r\n 1F0\t,1B0 \r\n", "s"), plain) << "blanks";
  EXPECT_EQ(parse_csv("\"0F0\",\"0B0\"\r\n\"1F0\",1B0,\"\"\r\n", "s"), plain) << "quotes";
}

TEST(Csv, RefusesWithRowCellAndReason) {
  EXPECT_EQ(message_of(""), "s.csv: there are no rows; a schedule has one for each rank");
  EXPECT_EQ(message_of("0SEND_F0"), "s.csv: there is no F, B, I or W in any row");
  EXPECT_EQ(message_of("0F0\n\n1F0\n"), "s.csv: row 2 (rank 1): there is no action; every rank needs some");
  EXPECT_EQ(message_of("0F0\n,,\n"), "s.csv: row 2 (rank 1): there is no action; every rank needs some");
  EXPECT_TRUE(
      message_of("0F0,0B0\n1F0,,1G0\n").starts_with("s.csv: row 2 (rank 1), cell 3: action '1G0': there is no kind"));
  EXPECT_TRUE(message_of("0F0,\"0B0\n").starts_with("s.csv: row 1 (rank 0), cell 2: action '\"0B0'"));
  EXPECT_TRUE(message_of("0F0\r1F0\n").starts_with("s.csv: row 1 (rank 0), cell 1: action '0F0\\x0d1F0'"));
  EXPECT_TRUE(message_of("\xef\xbb\xbf"
                         "0F0\n")
                  .starts_with("s.csv: row 1 (rank 0), cell 1: action '\\xef\\xbb\\xbf0F0'"));
  EXPECT_EQ(message_of("0F0,1F0\n2F0,,1F1\n"),
            "s.csv: row 2 (rank 1), cell 3: 1F1: stage 1 is on rank 0 already (row 1); a stage belongs to one rank");
  EXPECT_EQ(message_of("0F0\n2F0\n"),
            "s.csv: stage 1 has no F, B, I or W, but stage 2 has; they are numbered from 0 without gaps");
  EXPECT_EQ(message_of("0F0,0F2\n"),
            "s.csv: micro-batch 1 has no F, B, I or W, but micro-batch 2 has; they are numbered from 0 without gaps");
  EXPECT_EQ(message_of("2000000000F2000000000\n"),
            "s.csv: stage 0 has no F, B, I or W, but stage 2000000000 has; they are numbered from 0 without gaps")
      << "and no table of that size is made";
}

TEST(Csv, RoundTripsRandomSchedules) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const int ranks = 1 + static_cast<int>(random() % 5);
    Schedule schedule{"r", ranks + static_cast<int>(random() % 4), 1 + static_cast<int>(random() % 6), {}, {}};
    schedule.ranks.resize(ranks);
    for (int stage = 0; stage < schedule.stages; ++stage) {
      const int rank = stage < ranks ? stage : static_cast<int>(random() % ranks);
      schedule.rank_of_stage.push_back(rank);
      for (int m = 0; m < schedule.microbatches; ++m) {
        auto& actions = schedule.ranks[rank];
        const std::size_t at = random() % (actions.size() + 1);
        actions.insert(actions.begin() + static_cast<std::ptrdiff_t>(at), {stage, F, m});
        actions.push_back({stage, action_types()[random() % 8], m});
      }
    }
    const std::string text = to_csv(schedule);
    ASSERT_EQ(parse_csv(text, "r"), schedule) << "seed " << seed << "\n" << text;
    ASSERT_EQ(to_csv(parse_csv(text, "r")), text) << "seed " << seed;
  }
}

}  // namespace
}  // namespace plumbline
