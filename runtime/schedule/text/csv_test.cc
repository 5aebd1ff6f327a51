#include "runtime/schedule/text/csv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "runtime/error.h"
#include "runtime/testing/refusal.h"

namespace plumbline::schedule {
namespace {

using enum ActionType;

std::string message_of(std::string_view text, std::optional<Dialect> dialect = {}) {
  return testing::refusal([&] { parse_csv(text, "s.csv", dialect); });
}

TEST(Csv, WritesPythonsExcelDialect) {
  const Schedule schedule{"s", 2, 2, {0, 1}, {{{0, F, 0}, {0, F, 1}, {0, SEND_F, 1}, {0, B, 0}}, {{1, F, 0}}}};
  EXPECT_EQ(to_csv(schedule), "0F0,0F1,0SEND_F1,0B0\r\n1F0\r\n");
}

TEST(Csv, WritesAndReadsGroupsAndActionsOfAStage) {
  const Schedule schedule{"s",
                          2,
                          2,
                          {0, 0},
                          {{{0, UNSHARD, kNoMicrobatch},
                            {0, F, 0},
                            {1, F, 0},
                            {0, F, 1, true},
                            {1, B, 0},
                            {1, F, 1, true},
                            {0, I, 0, true},
                            {0, W, 0},
                            {0, REDUCE_GRAD, kNoMicrobatch}}}};
  const std::string text = "0UNSHARD,0F0,1F0,(0F1;1B0)OVERLAP_F_B,(1F1;0I0;0W0)OVERLAP_F_B,0REDUCE_GRAD\r\n";
  EXPECT_EQ(to_csv(schedule), text);
  EXPECT_EQ(parse_csv(text, "s"), schedule);
}

TEST(Csv, TellsPyTorchsFormatsApart) {
  EXPECT_EQ(csv_format(parse_csv("0F0,(0F1;0B0)OVERLAP_F_B,0I1,0W1\n", "s")), "compute_only");
  EXPECT_EQ(csv_format(parse_csv("0F0,0SEND_F0\n1F0\n", "s")), "compute_comms");
  EXPECT_EQ(csv_format(parse_csv("0UNSHARD,0F0\n", "s")), "compute_comms");
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
  EXPECT_EQ(parse_csv("\xef\xbb\xbf"
                      "0F0,0B0\r\n1F0,1B0\r\n",
                      "s"),
            plain)
      << "a byte order mark";
  EXPECT_EQ(parse_csv("\"0F0\",\"0B0\"\r\n\"1F0\",1B0,\"\"\r\n", "s"), plain) << "quotes";
}

TEST(Csv, RefusesWithRowCellAndReason) {
  EXPECT_EQ(message_of(""), "s.csv: there are no rows; a schedule has one for each rank");
  EXPECT_EQ(message_of("0SEND_F0"), "s.csv: row 1 (rank 0): there is no F, B, I or W; every rank needs some");
  EXPECT_EQ(message_of("0F0\n\n1F0\n"), "s.csv: row 2 (rank 1): there is no F, B, I or W; every rank needs some");
  EXPECT_EQ(message_of("0F0;0B0\n"), "s.csv: row 1 (rank 0): cells are separated by ';'; write commas");
  EXPECT_EQ(message_of("0F0\t0B0\n"), "s.csv: row 1 (rank 0): cells are separated by tabs; write commas");
  EXPECT_EQ(parse_csv("0F0,0B0\n\n \r\n", "s.csv"), parse_csv("0F0,0B0\n", "s.csv")) << "empty lines at the end";
  EXPECT_EQ(message_of("0F0\n,,\n"), "s.csv: row 2 (rank 1): there is no F, B, I or W; every rank needs some");
  EXPECT_TRUE(
      message_of("0F0,0B0\n1F0,,1G0\n").starts_with("s.csv: row 2 (rank 1), cell 3: action '1G0': there is no kind"));
  EXPECT_TRUE(message_of("0F0,\"0B0\n").starts_with("s.csv: row 1 (rank 0), cell 2: action '\"0B0'"));
  EXPECT_TRUE(message_of("0F0\r1F0\n").starts_with("s.csv: row 1 (rank 0), cell 1: action '0F0\\x0d1F0'"));
  EXPECT_TRUE(message_of("0F0\n\xef\xbb\xbf"
                         "1F0\n")
                  .starts_with("s.csv: row 2 (rank 1), cell 1: action '\\xef\\xbb\\xbf1F0'"))
      << "a byte order mark stands at the beginning only";
  EXPECT_TRUE(message_of("0F0,,(0F1;0I0;0SEND_F0)OVERLAP_F_B\n")
                  .starts_with("s.csv: row 1 (rank 0), cell 3: group '(0F1;0I0;0SEND_F0)OVERLAP_F_B': 0SEND_F0 is no"));
  EXPECT_EQ(message_of("0F0\n2F0\n"),
            "s.csv: stage 1 has no F, B, I or W, but stage 2 has; they are numbered from 0 without gaps");
  EXPECT_EQ(message_of("0F0,0F2\n"),
            "s.csv: micro-batch 1 has no F, B, I or W, but micro-batch 2 has; they are numbered from 0 without gaps");
  EXPECT_EQ(message_of("2000000000F2000000000\n"),
            "s.csv: stage 0 has no F, B, I or W, but stage 2000000000 has; they are numbered from 0 without gaps")
      << "and no table of that size is made";
}

// Each micro-batch of each stage appears somewhere on its rank, followed by random actions; some neighbours form
// groups.
Schedule random_text(std::mt19937& random) {
  const auto below = [&](std::size_t limit) { return static_cast<int>(random() % limit); };
  const int ranks = 1 + below(5);
  Schedule schedule{"r", ranks + below(4), 2 + below(5)};
  schedule.ranks.resize(ranks);
  const int replicas = ranks > 1 && below(3) == 0 ? 2 : 1;
  std::vector<int> ranks_of_replicas;
  for (int i = 0; i < schedule.stages; ++i) ranks_of_replicas.push_back(i < ranks ? i : below(ranks));
  schedule.rank_of_stage = ranks_of_replicas;
  if (replicas == 2) {
    for (int rank : ranks_of_replicas) schedule.rank_of_stage.push_back((rank + 1) % ranks);
    schedule.replica_of_microbatch = {0, 1};
    while (static_cast<int>(schedule.replica_of_microbatch.size()) < schedule.microbatches) {
      schedule.replica_of_microbatch.push_back(below(2));
    }
  }
  for (int stage = 0; stage < schedule.stages; ++stage) {
    for (int m = 0; m < schedule.microbatches; ++m) {
      auto& actions = schedule.ranks[schedule.rank_of(stage, m)];
      actions.insert(actions.begin() + below(actions.size() + 1), {stage, F, m});
      const ActionType type = action_types()[below(kActionTypeCount)];
      actions.insert(actions.begin() + below(actions.size() + 1),
                     {stage, type, has_microbatch(type) ? m : kNoMicrobatch});
    }
  }
  schedule.ranks[schedule.rank_of(0, 0)].push_back({0, I, 0});  // an I rules out the dialect of 2024
  for (auto& actions : schedule.ranks) {
    for (std::size_t i = 0; i + 1 < actions.size(); ++i) {
      actions[i].overlaps_next = is_compute(actions[i].type) && is_compute(actions[i + 1].type) && below(4) == 0;
    }
  }
  return schedule;
}

TEST(Csv, RoundTripsRandomSchedules) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    std::mt19937 random(seed);
    const Schedule schedule = random_text(random);
    const std::string text = to_csv(schedule);
    ASSERT_EQ(parse_csv(text, "r"), schedule) << "seed " << seed << "\n" << text;
    ASSERT_EQ(to_csv(parse_csv(text, "r")), text) << "seed " << seed;
    Dialect needed = Dialect::Torch211;
    for (const auto& actions : schedule.ranks)
      for (const Action& action : actions) needed = std::max(needed, needed_dialect(action.type));
    ASSERT_EQ(parse_csv(text, "r", needed), schedule) << "seed " << seed;
    if (needed == Dialect::Torch215) {
      ASSERT_NE(message_of(text, Dialect::Torch211), "accepted") << "seed " << seed;
    }
  }
}

// A damaged text is either refused in one line or parsed to a schedule that survives a round trip.
TEST(Csv, DamagedTextsAreRefusedOrRoundTrip) {
  const std::string bytes = "0123456789FBIWSENDRCV_()[];:, \"\r\n\t\xef\xbb\xbf+-.";
  int refused = 0, read = 0;
  for (unsigned seed = 0; seed < 20000; ++seed) {
    std::mt19937 random(seed);
    std::string text = to_csv(random_text(random));
    for (unsigned n = 1 + random() % 3; n > 0 && !text.empty(); --n) {
      const std::size_t at = random() % text.size();
      const unsigned what = random() % 4;
      if (what == 0) text.erase(at, 1 + random() % 4);
      if (what == 1) text.insert(at, 1, bytes[random() % bytes.size()]);
      if (what == 2) text[at] = bytes[random() % bytes.size()];
      if (what == 3) text.insert(at, text.substr(random() % text.size(), 1 + random() % 12));
    }
    try {
      const Schedule schedule = parse_csv(text, "r");
      ++read;
      ASSERT_EQ(shape_problem(schedule), "") << "seed " << seed << "\n" << text;
      const std::string printed = to_csv(schedule);
      ASSERT_EQ(parse_csv(printed, "r"), schedule) << "seed " << seed << "\n" << text;
      ASSERT_EQ(to_csv(parse_csv(printed, "r")), printed) << "seed " << seed << "\n" << text;
    } catch (const InputError& error) {
      ++refused;
      const std::string_view what = error.what();
      ASSERT_TRUE(what.starts_with("r: ")) << what;
      ASSERT_EQ(what.find('\n'), what.npos) << "seed " << seed << "\n" << what;
    }
  }
  EXPECT_GT(refused, 5000);
  EXPECT_GT(read, 200);
}

}  // namespace
}  // namespace plumbline::schedule
