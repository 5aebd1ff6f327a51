#include "runtime/schedule/action.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>

#include "runtime/error.h"

namespace plumbline {
namespace {

TEST(Action, PrintsAsPyTorchDoes) {
  EXPECT_EQ(to_string(Action{2, ActionType::F, 0}), "2F0");
  EXPECT_EQ(to_string(Action{0, ActionType::B, 11}), "0B11");
  EXPECT_EQ(to_string(Action{0, ActionType::I, 3}), "0I3");
  EXPECT_EQ(to_string(Action{7, ActionType::W, 1}), "7W1");
  EXPECT_EQ(to_string(Action{1, ActionType::SEND_F, 3}), "1SEND_F3");
  EXPECT_EQ(to_string(Action{1, ActionType::RECV_F, 3}), "1RECV_F3");
  EXPECT_EQ(to_string(Action{12, ActionType::SEND_B, 345}), "12SEND_B345");
  EXPECT_EQ(to_string(Action{1, ActionType::RECV_B, 0}), "1RECV_B0");
}

TEST(Action, ComputeKinds) {
  std::string compute;
  for (ActionType type : action_types()) {
    if (is_compute(type)) compute += to_string(type);
  }
  EXPECT_EQ(compute, "FBIW");
  EXPECT_EQ(action_types().size(), 8u);
}

TEST(Action, ParsesWhatItPrints) {
  for (ActionType type : action_types()) {
    for (int stage : {0, 1, 9, 10, 2147483647}) {
      for (int microbatch : {0, 7, 100, 2147483647}) {
        const Action action{stage, type, microbatch};
        EXPECT_EQ(parse_action(to_string(action)), action) << to_string(action);
      }
    }
  }
}

TEST(Action, RefusesEverythingElse) {
  for (const char* text : {"",
                           " ",
                           "F",
                           "F0",
                           "2F",
                           "2",
                           "20",
                           "2F0 ",
                           " 2F0",
                           "2 F0",
                           "2F0rubbish",
                           "-1F0",
                           "2F-1",
                           "+2F0",
                           "2f0",
                           "2X0",
                           "2FB0",
                           "2SEND0",
                           "2SEND_F",
                           "SEND_F3",
                           "2SEND_I0",
                           "2F0.",
                           "2F1.5",
                           "0x1F0",
                           "02F0",
                           "2F00",
                           "2147483648F0",
                           "0F99999999999999999999",
                           "1UNSHARD",
                           "(1F1;2B0)OVERLAP_F_B",
                           "2F0,2F1",
                           "2F\n0"}) {
    EXPECT_THROW(parse_action(text), InputError) << "accepted: " << text;
  }
}

TEST(Action, ErrorsNameTextReasonAndWhatIsAccepted) {
  const auto message_of = [](std::string_view text) {
    try {
      parse_action(text);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(
      message_of("2X0"),
      "action '2X0': there is no kind 'X'; accepted is <stage><kind><micro-batch>, such as 2F0 or 1SEND_F3, with a "
      "kind out of F, B, I, W, SEND_F, RECV_F, SEND_B, RECV_B");
  EXPECT_NE(message_of("F0").find("the stage is missing"), std::string::npos);
  EXPECT_NE(message_of("3B").find("the micro-batch is missing"), std::string::npos);
  EXPECT_NE(message_of("0F2147483648").find("the micro-batch is too large"), std::string::npos);
  EXPECT_NE(message_of("00F1").find("the stage has leading zeros"), std::string::npos);
  const std::string hostile = message_of(std::string("2F\n0\xff\0", 6) + std::string(10000, 'x'));
  EXPECT_EQ(hostile.find('\n'), std::string::npos);
  EXPECT_NE(hostile.find("\\x0a0\\xff\\x00"), std::string::npos) << hostile;
  EXPECT_LT(hostile.size(), 500u);
}

// The grammar by brute force: cut the text in three at all places, look the parts up.
std::optional<Action> parse_by_search(const std::string& text) {
  static const std::map<std::string, int> numbers = [] {
    std::map<std::string, int> table;
    for (int n = 0; n < 3000; ++n) table[std::to_string(n)] = n;
    return table;
  }();
  static const std::map<std::string, ActionType> kinds = {
      {"F", ActionType::F},           {"B", ActionType::B},           {"I", ActionType::I},
      {"W", ActionType::W},           {"SEND_F", ActionType::SEND_F}, {"RECV_F", ActionType::RECV_F},
      {"SEND_B", ActionType::SEND_B}, {"RECV_B", ActionType::RECV_B}};
  for (std::size_t i = 0; i <= text.size(); ++i) {
    for (std::size_t j = i; j <= text.size(); ++j) {
      const auto stage = numbers.find(text.substr(0, i)), microbatch = numbers.find(text.substr(j));
      const auto kind = kinds.find(text.substr(i, j - i));
      if (stage != numbers.end() && kind != kinds.end() && microbatch != numbers.end()) {
        return Action{stage->second, kind->second, microbatch->second};
      }
    }
  }
  return std::nullopt;
}

TEST(Action, AgreesWithTheGrammarOnRandomTexts) {
  int accepted = 0;
  const std::vector<std::string> pieces = {"0",     "1",     "27",     "F",      "B", "I", "W",
                                           "SEND_", "RECV_", "SEND_F", "RECV_B", " ", "_"};
  for (unsigned seed = 0; seed < 20000; ++seed) {
    std::mt19937 random(seed);
    std::string text;
    for (unsigned n = 2 + random() % 3; n > 0; --n) text += pieces[random() % pieces.size()];
    const std::optional<Action> expected = parse_by_search(text);
    std::optional<Action> parsed;
    try {
      parsed = parse_action(text);
    } catch (const InputError&) {
    }
    ASSERT_EQ(parsed, expected) << "seed " << seed << ", text " << text;
    accepted += parsed ? 1 : 0;
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace plumbline
