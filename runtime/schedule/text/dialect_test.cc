#include "runtime/schedule/text/dialect.h"

#include <gtest/gtest.h>

#include "runtime/error.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/testing/refusal.h"

namespace plumbline::schedule {
namespace {

std::string dialect_refusal(std::string_view text, std::optional<Dialect> dialect = {}) {
  return testing::refusal([&] { parse_csv(text, "s.csv", dialect); });
}

TEST(Dialect, NamesAreVersions) {
  for (const char* name : {"2024", "2.11", "2.15"}) EXPECT_EQ(to_string(parse_dialect(name)), name);
  EXPECT_EQ(testing::refusal([] { parse_dialect("2.9"); }),
            "there is no dialect '2.9'; expected 2024, 2.11 or 2.15, the versions of PyTorch's text form");
}

TEST(Dialect, WaitsAreWhatIsNewIn215) {
  const std::string old =
      "0UNSHARD,0F0,0SEND_F0,0RECV_B0,(0F1;0B0)OVERLAP_F_B,0I1,0W1,0REDUCE_GRAD,0RESHARD\n1F0,1SEND_B0,1RECV_F0\n";
  EXPECT_EQ(parse_csv(old, "s", Dialect::Torch211), parse_csv(old, "s"));
  EXPECT_EQ(parse_csv(old, "s", Dialect::Torch215), parse_csv(old, "s"));
  for (const std::string wait : {"0WAIT_SEND_F0", "0WAIT_SEND_B1", "0WAIT_REDUCE_GRAD"}) {
    const std::string text = "0F0,," + wait + "\n1F0\n";
    EXPECT_EQ(parse_csv(text, "s", Dialect::Torch215), parse_csv(text, "s"));
    const std::string kind = wait.substr(1, wait.find_last_not_of("01"));
    EXPECT_EQ(
        dialect_refusal(text, Dialect::Torch211),
        "s.csv: row 1 (rank 0), cell 3: " + wait + ": the dialect of 2.11 has no " + kind + "; it came with 2.15");
  }
}

// In 2024 zero-bubble orders used these kinds: B the input half, W the weight half, BW the whole.
TEST(Dialect, That2024IsReadOnlyWhenAskedFor) {
  const std::string text = "0F0,0F1,0B0,0W0,0BW1\n1RECV_F0,1F0,1BW0,1SEND_B0,1F1,1B1,1W1,1RESHARD\n";
  EXPECT_EQ(to_csv(parse_csv(text, "s", Dialect::Torch2024)),
            "0F0,0F1,0I0,0W0,0B1\r\n1RECV_F0,1F0,1B0,1SEND_B0,1F1,1I1,1W1,1RESHARD\r\n");
  const std::string named =
      "in PyTorch's dialect of 2024 B is the input half of a backward and BW the whole; such a file is read by "
      "`plumbline schedule FILE --dialect 2024 --format compute`, which converts it";
  EXPECT_EQ(dialect_refusal(text), "s.csv: row 1 (rank 0), cell 5: action '0BW1': there is no kind 'BW'; " + named);
  EXPECT_EQ(dialect_refusal("0F0,0B0,0F1,0B1,0W1,0W0\n"), "s.csv: there is no I, but 0B0 as well as 0W0: " + named)
      << "every word is known today, but B means something else";
  EXPECT_EQ(dialect_refusal("0F0,0B0,0W1,0F1\n"), "accepted") << "broken today; check.h says how";
  EXPECT_EQ(dialect_refusal("0F0,0B0,0W0,0F1,0B1\n"), "accepted") << "broken in 2024 as well";
  EXPECT_EQ(dialect_refusal("0F0,0I0,0B0,0W0\n"), "accepted") << "there is an I, so it is not of 2024";
}

TEST(Dialect, Of2024HasNoNewerActions) {
  for (const char* text : {"0I0", "(0F0;0B0)OVERLAP_F_B", "0REDUCE_GRAD", "0WAIT_SEND_F0", "0WAIT_REDUCE_GRAD", "0BWX0",
                           "0BW", "BW0", "", "0", "0X0", "0BW 1"}) {
    EXPECT_THROW(parse_action_of_2024(text), InputError) << text;
  }
  EXPECT_EQ(parse_action_of_2024("12BW3"), (Action{12, ActionType::B, 3}));
  EXPECT_EQ(parse_action_of_2024("12B3"), (Action{12, ActionType::I, 3}));
  EXPECT_EQ(parse_action_of_2024("12UNSHARD"), (Action{12, ActionType::UNSHARD, kNoMicrobatch}));
  EXPECT_TRUE(dialect_refusal("0F0,0I0\n", Dialect::Torch2024)
                  .starts_with("s.csv: row 1 (rank 0), cell 2: action '0I0': the dialect of 2024 has no I; expected"));
}

}  // namespace
}  // namespace plumbline::schedule
