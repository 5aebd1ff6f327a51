#include "runtime/schedule/action.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>

#include "runtime/error.h"
#include "runtime/testing/refusal.h"

namespace plumbline::schedule {
namespace {

// The error of parse_action, or of the given parser.
template <class Parse = Action (*)(std::string_view)>
std::string parse_refusal(std::string_view text, Parse parse = parse_action) {
  return testing::refusal([&] { parse(text); });
}

std::vector<Action> entry(std::string_view text) {
  std::vector<Action> actions;
  parse_entry(text, actions);
  return actions;
}

TEST(Action, PrintsAsPyTorchDoes) {
  EXPECT_EQ(to_string(Action{2, ActionType::F, 0}), "2F0");
  EXPECT_EQ(to_string(Action{0, ActionType::B, 11}), "0B11");
  EXPECT_EQ(to_string(Action{0, ActionType::I, 3}), "0I3");
  EXPECT_EQ(to_string(Action{7, ActionType::W, 1}), "7W1");
  EXPECT_EQ(to_string(Action{1, ActionType::SEND_F, 3}), "1SEND_F3");
  EXPECT_EQ(to_string(Action{1, ActionType::RECV_F, 3}), "1RECV_F3");
  EXPECT_EQ(to_string(Action{12, ActionType::SEND_B, 345}), "12SEND_B345");
  EXPECT_EQ(to_string(Action{1, ActionType::RECV_B, 0}), "1RECV_B0");
  EXPECT_EQ(to_string(Action{3, ActionType::WAIT_SEND_F, 2}), "3WAIT_SEND_F2");
  EXPECT_EQ(to_string(Action{3, ActionType::WAIT_SEND_B, 2}), "3WAIT_SEND_B2");
  EXPECT_EQ(to_string(Action{1, ActionType::UNSHARD, kNoMicrobatch}), "1UNSHARD");
  EXPECT_EQ(to_string(Action{10, ActionType::RESHARD, kNoMicrobatch}), "10RESHARD");
  EXPECT_EQ(to_string(Action{0, ActionType::REDUCE_GRAD, kNoMicrobatch}), "0REDUCE_GRAD");
  EXPECT_EQ(to_string(Action{0, ActionType::WAIT_REDUCE_GRAD, kNoMicrobatch}), "0WAIT_REDUCE_GRAD");
}

TEST(Action, GroupsOfKinds) {
  std::string compute, sends, receives, waits, of_a_stage;
  for (ActionType type : action_types()) {
    const std::string name = std::string(to_string(type)) + " ";
    if (is_compute(type)) compute += name;
    if (is_send(type)) sends += name;
    if (is_receive(type)) receives += name;
    if (is_wait_send(type)) waits += name;
    if (!has_microbatch(type)) of_a_stage += name;
  }
  EXPECT_EQ(compute, "F B I W ");
  EXPECT_EQ(sends, "SEND_F SEND_B ");
  EXPECT_EQ(receives, "RECV_F RECV_B ");
  EXPECT_EQ(waits, "WAIT_SEND_F WAIT_SEND_B ");
  EXPECT_EQ(of_a_stage, "UNSHARD RESHARD REDUCE_GRAD WAIT_REDUCE_GRAD ");
  EXPECT_EQ(action_types().size(), static_cast<std::size_t>(kActionTypeCount));
}

TEST(Action, ParsesWhatItPrints) {
  for (ActionType type : action_types()) {
    for (int stage : {0, 1, 9, 10, 2147483647}) {
      for (int microbatch : {0, 7, 100, 2147483647}) {
        const Action action{stage, type, has_microbatch(type) ? microbatch : kNoMicrobatch};
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
                           "UNSHARD",
                           "1UNSHARD0",
                           "1UNSHARD ",
                           "1REDUCE_GRAD2",
                           "1WAIT_REDUCE_GRAD2",
                           "1WAIT_SEND_F",
                           "1WAIT_F0",
                           "1WAIT_SEND_F-1",
                           "1OVERLAP_F_B",
                           "1OVERLAP_F_B0",
                           "-1OVERLAP_F_B",
                           "(1F1;2B0)OVERLAP_F_B",
                           "2F0,2F1",
                           "2F\n0"}) {
    EXPECT_THROW(parse_action(text), InputError) << "accepted: " << text;
  }
}

TEST(Action, ErrorsNameTextReasonAndWhatIsAccepted) {
  EXPECT_EQ(parse_refusal("2X0"),
            "action '2X0': there is no kind 'X'; expected <stage><kind><micro-batch>, such as 2F0 or 1SEND_F3, with "
            "a kind out of F, B, I, W, SEND_F, RECV_F, SEND_B, RECV_B, WAIT_SEND_F, WAIT_SEND_B, OFFLOAD, RELOAD, or "
            "<stage><kind> with one out of UNSHARD, RESHARD, REDUCE_GRAD, WAIT_REDUCE_GRAD");
  EXPECT_NE(parse_refusal("F0").find("the stage is missing"), std::string::npos);
  EXPECT_NE(parse_refusal("3B").find("the micro-batch is missing"), std::string::npos);
  EXPECT_NE(parse_refusal("0F2147483648").find("the micro-batch is too large"), std::string::npos);
  EXPECT_NE(parse_refusal("00F1").find("the stage has leading zeros"), std::string::npos);
  EXPECT_NE(parse_refusal("1RESHARD0").find("RESHARD is for a whole stage and takes no micro-batch"),
            std::string::npos);
  const std::string hostile = parse_refusal(std::string("2F\n0\xff\0", 6) + std::string(10000, 'x'));
  EXPECT_EQ(hostile.find('\n'), std::string::npos);
  EXPECT_NE(hostile.find("\\x0a0\\xff\\x00"), std::string::npos) << hostile;
  EXPECT_LT(hostile.size(), 600u);
}

// The grammar by brute force: cut the text in three at every place and look the parts up.
std::optional<Action> parse_by_search(const std::string& text) {
  static const std::map<std::string, int> numbers = [] {
    std::map<std::string, int> table;
    for (int n = 0; n < 3000; ++n) table[std::to_string(n)] = n;
    return table;
  }();
  static const std::map<std::string, ActionType> kinds = {{"F", ActionType::F},
                                                          {"B", ActionType::B},
                                                          {"I", ActionType::I},
                                                          {"W", ActionType::W},
                                                          {"SEND_F", ActionType::SEND_F},
                                                          {"RECV_F", ActionType::RECV_F},
                                                          {"SEND_B", ActionType::SEND_B},
                                                          {"RECV_B", ActionType::RECV_B},
                                                          {"WAIT_SEND_F", ActionType::WAIT_SEND_F},
                                                          {"WAIT_SEND_B", ActionType::WAIT_SEND_B}};
  static const std::map<std::string, ActionType> kinds_of_a_stage = {
      {"UNSHARD", ActionType::UNSHARD},
      {"RESHARD", ActionType::RESHARD},
      {"REDUCE_GRAD", ActionType::REDUCE_GRAD},
      {"WAIT_REDUCE_GRAD", ActionType::WAIT_REDUCE_GRAD}};
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const auto of_a_stage = kinds_of_a_stage.find(text.substr(i));
    if (numbers.count(text.substr(0, i)) && of_a_stage != kinds_of_a_stage.end()) {
      return Action{numbers.at(text.substr(0, i)), of_a_stage->second, -1};
    }
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
  const std::vector<std::string> pieces = {"0",     "1",      "2",     "F",       "B",           "I",      "W", "SEND_",
                                           "RECV_", "SEND_F", "WAIT_", "UNSHARD", "REDUCE_GRAD", "RECV_B", " ", "_"};
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

TEST(Action, EntriesAreActionsAndGroups) {
  EXPECT_EQ(entry("2F0"), (std::vector<Action>{{2, ActionType::F, 0}}));
  EXPECT_EQ(entry("1UNSHARD"), (std::vector<Action>{{1, ActionType::UNSHARD, kNoMicrobatch}}));
  const std::vector<Action> pair = {{5, ActionType::F, 3, true}, {2, ActionType::B, 1}};
  EXPECT_EQ(entry("(5F3;2B1)OVERLAP_F_B"), pair);
  EXPECT_EQ(entry_text(pair), "(5F3;2B1)OVERLAP_F_B");
  const std::vector<Action> three = {{0, ActionType::F, 3, true}, {1, ActionType::I, 1, true}, {0, ActionType::W, 10}};
  EXPECT_EQ(entry("(0F3;1I1;0W10)OVERLAP_F_B"), three);
  EXPECT_EQ(entry_text(three), "(0F3;1I1;0W10)OVERLAP_F_B");
  EXPECT_EQ(entry_text(std::span(three).subspan(1, 1)), "1I1");

  std::vector<Action> actions = pair;
  parse_entry("0W4", actions);
  EXPECT_THROW(parse_entry("(0F0;0G0)OVERLAP_F_B", actions), InputError);
  EXPECT_EQ(actions, (std::vector<Action>{pair[0], pair[1], {0, ActionType::W, 4}})) << "a refused entry adds nothing";
}

TEST(Action, RefusesGroupsWithAReason) {
  const auto refused = [](std::string_view text) { return parse_refusal(text, entry); };
  const std::string accepted = "; expected (2F1;3B0)OVERLAP_F_B, without blanks, with two or more of F, B, I, W";
  EXPECT_EQ(refused("(1F1)OVERLAP_F_B"), "group '(1F1)OVERLAP_F_B': it has one member" + accepted);
  EXPECT_EQ(refused("(1F1;2B0"), "group '(1F1;2B0': it does not end in )OVERLAP_F_B" + accepted);
  EXPECT_EQ(refused("(1F1;(2B0;3B0)OVERLAP_F_B)OVERLAP_F_B"),
            "group '(1F1;(2B0;3B0)OVERLAP_F_B)OVERLAP_F_B': groups do not nest" + accepted);
  EXPECT_EQ(refused("(1F1;1SEND_F1)OVERLAP_F_B"),
            "group '(1F1;1SEND_F1)OVERLAP_F_B': 1SEND_F1 is no computation" + accepted);
  EXPECT_EQ(refused("(1F1;1UNSHARD)OVERLAP_F_B"),
            "group '(1F1;1UNSHARD)OVERLAP_F_B': 1UNSHARD is no computation" + accepted);
  EXPECT_TRUE(refused("(1F1; 2B0)OVERLAP_F_B").starts_with("group '(1F1; 2B0)OVERLAP_F_B': action ' 2B0': "));
  for (const char* text : {"(",
                           "()",
                           "()OVERLAP_F_B",
                           "(;)OVERLAP_F_B",
                           "(1F1;)OVERLAP_F_B",
                           "(;1F1;2B0)OVERLAP_F_B",
                           "(1F1;2B0)",
                           "(1F1;2B0)OVERLAP",
                           "(1F1;2B0)OVERLAP_B_F",
                           "(1F1;2B0)OVERLAP_F_B0",
                           "(1F1;2B0)OVERLAP_F_B ",
                           "(1F1;2B0) OVERLAP_F_B",
                           " (1F1;2B0)OVERLAP_F_B",
                           "( 1F1;2B0)OVERLAP_F_B",
                           "(1F1 ;2B0)OVERLAP_F_B",
                           "(1F1,2B0)OVERLAP_F_B",
                           "(1F1;2B0]OVERLAP_F_B",
                           "(1F1;2B0))OVERLAP_F_B",
                           "((1F1;2B0)OVERLAP_F_B",
                           "0(1F1;2B0)OVERLAP_F_B",
                           "(1F1;;2B0)OVERLAP_F_B",
                           "(1F01;2B0)OVERLAP_F_B",
                           ")OVERLAP_F_B",
                           "1F1;2B0",
                           "(1F1;2B0)F"}) {
    EXPECT_NE(refused(text), "accepted") << text;
  }
}

}  // namespace
}  // namespace plumbline::schedule
