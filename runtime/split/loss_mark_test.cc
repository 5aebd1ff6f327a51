// The rules are those of the seed's _find_loss_from_output_and_spec and _find_loss_output; each expectation below was
// derived from its source. The outputs of a test are written as the seed would print them, values numbered from 0.
#include "runtime/split/loss_mark.h"

#include <gtest/gtest.h>

#include "runtime/error.h"

namespace plumbline::split {
namespace {

graph::OutputTree value(int output) { return {graph::OutputTree::Kind::Value, output, "", {}, {}}; }
graph::OutputTree constant(const std::string& text) { return {graph::OutputTree::Kind::Constant, -1, text, {}, {}}; }
graph::OutputTree tuple(std::vector<graph::OutputTree> items) {
  return {graph::OutputTree::Kind::Tuple, -1, "", std::move(items), {}};
}
graph::OutputTree list(std::vector<graph::OutputTree> items) {
  return {graph::OutputTree::Kind::List, -1, "", std::move(items), {}};
}
graph::OutputTree dict(std::vector<std::string> keys, std::vector<graph::OutputTree> items) {
  return {graph::OutputTree::Kind::Dict, -1, "", std::move(items), std::move(keys)};
}

std::string refusal(const graph::OutputTree& outputs, const LossMark& mark) try {
  return "output " + std::to_string(find_loss(outputs, mark).value());
} catch (const InputError& error) {
  return error.what();
}

TEST(TestIr, OutputLossValueSpec) {
  const graph::OutputTree outputs = dict({"out", "loss"}, {value(0), value(1)});
  EXPECT_EQ(find_loss(outputs, LossMark::dict({{"loss", true}, {"out", false}})), 1);
  EXPECT_EQ(find_loss(outputs, LossMark::dict({{"loss", false}, {"out", true}})), 0);
  EXPECT_EQ(find_loss(outputs, LossMark::dict({{"loss", true}, {"out", true}})), 1) << "the order is the spec's";
  EXPECT_EQ(find_loss(dict({"loss"}, {value(0)}), LossMark::dict({{"loss", true}})), 0);
}

TEST(LossMark, TheFirstTrueWins) {
  EXPECT_EQ(find_loss(value(3), LossMark(true)), 3);
  const graph::OutputTree three = tuple({value(0), value(1), value(2)});
  EXPECT_EQ(find_loss(three, LossMark::tuple({true, false, false})), 0);
  EXPECT_EQ(find_loss(three, LossMark::tuple({false, true, true})), 1);
  EXPECT_EQ(find_loss(three, LossMark::list({false, false, true})), 2) << "a list stands for a tuple";
  EXPECT_EQ(find_loss(list({value(0), value(1)}), LossMark::tuple({false, true})), 1) << "and a tuple for a list";
  const graph::OutputTree nested = tuple({dict({"a", "b"}, {value(0), list({value(1), value(2)})}), value(3)});
  EXPECT_EQ(
      find_loss(nested, LossMark::tuple({LossMark::dict({{"b", LossMark::list({false, true})}, {"a", false}}), true})),
      2);
  EXPECT_EQ(find_loss(nested, LossMark::tuple({false, true})), 3) << "false for a whole dict";
}

TEST(LossMark, NothingBehindTheLossIsLookedAt) {
  const graph::OutputTree outputs = tuple({value(0), value(1)});
  EXPECT_EQ(find_loss(outputs, LossMark::tuple({true, LossMark::tuple({false})})), 0);
  EXPECT_EQ(find_loss(outputs, LossMark::tuple({true, LossMark::unsupported("int")})), 0);
}

TEST(LossMark, WithoutASpecTheKeyLossIsTheLoss) {
  EXPECT_EQ(find_loss(dict({"logits", "loss"}, {value(0), value(1)}), std::nullopt), 1);
  EXPECT_EQ(find_loss(dict({"logits"}, {value(0)}), std::nullopt), std::nullopt);
  EXPECT_EQ(find_loss(dict({"loss"}, {constant("None")}), std::nullopt), std::nullopt) << "a model given no labels";
  EXPECT_EQ(find_loss(dict({"loss"}, {tuple({value(0)})}), std::nullopt), std::nullopt);
  EXPECT_EQ(find_loss(value(0), std::nullopt), std::nullopt);
  EXPECT_EQ(find_loss(tuple({dict({"loss"}, {value(0)})}), std::nullopt), std::nullopt) << "only at the top";
}

TEST(LossMark, TheOutputOfATrivialLossWrapperIsTheLoss) {
  EXPECT_EQ(find_loss(value(0), std::nullopt, true), 0);
  EXPECT_EQ(find_loss(list({value(0)}), std::nullopt, true), 0);
  EXPECT_EQ(find_loss(value(0), LossMark(false), true), 0) << "whatever the spec";
  EXPECT_THROW(find_loss(tuple({value(0), value(1)}), std::nullopt, true), InputError);
}

TEST(LossMark, RefusesAnotherKind) {
  EXPECT_EQ(refusal(value(0), LossMark::tuple({true})),
            "loss spec: outputs is a value, but its spec is a tuple; give true, false or the same nesting");
  EXPECT_EQ(refusal(tuple({value(0), dict({"a"}, {value(1)})}), LossMark::tuple({false, LossMark::list({true})})),
            "loss spec: outputs[1] is a dict with the keys a, but its spec is a list; give true, false or the same "
            "nesting");
  EXPECT_EQ(refusal(dict({"a"}, {list({value(0), value(1)})}), LossMark::dict({{"a", LossMark::dict({{"x", true}})}})),
            "loss spec: outputs[\"a\"] is a list of 2, but its spec is a dict; give true, false or the same nesting");
  EXPECT_EQ(refusal(constant("3"), LossMark::dict({})),
            "loss spec: outputs is the constant 3, but its spec is a dict; give true, false or the same nesting");
}

TEST(LossMark, RefusesAnotherLength) {
  EXPECT_EQ(refusal(tuple({value(0), value(1), value(2)}), LossMark::tuple({true, false})),
            "loss spec: outputs is a tuple of 3, but its spec has 2 entries; give one for each");
  EXPECT_EQ(refusal(tuple({list({value(0)})}), LossMark::tuple({LossMark::tuple({false, true})})),
            "loss spec: outputs[0] is a list of 1, but its spec has 2 entries; give one for each");
}

TEST(LossMark, RefusesOtherKeys) {
  EXPECT_EQ(refusal(dict({"out", "loss"}, {value(0), value(1)}), LossMark::dict({{"loss", true}})),
            "loss spec: outputs is a dict with the keys out, loss, but its spec has the keys loss; give the same");
  EXPECT_EQ(refusal(tuple({dict({}, {})}), LossMark::tuple({LossMark::dict({{"loss", true}})})),
            "loss spec: outputs[0] is a dict with no keys, but its spec has the keys loss; give the same");
}

TEST(LossMark, RefusesAnUnsupportedType) {
  EXPECT_EQ(refusal(value(0), LossMark::unsupported("int")),
            "loss spec: outputs has a spec of type int; give true, false, or a tuple, list or dict of such");
  EXPECT_EQ(
      refusal(tuple({value(0), dict({"loss"}, {value(1)})}),
              LossMark::tuple({false, LossMark::dict({{"loss", LossMark::unsupported("NoneType")}})})),
      "loss spec: outputs[1][\"loss\"] has a spec of type NoneType; give true, false, or a tuple, list or dict of "
      "such");
}

TEST(LossMark, RefusesALossThatIsNoValue) {
  EXPECT_EQ(refusal(constant("None"), LossMark(true)),
            "loss spec: outputs is marked as the loss, but it is the constant None; mark one value that the model "
            "computes");
  EXPECT_EQ(refusal(tuple({value(0), dict({"loss"}, {constant("0.5")})}),
                    LossMark::tuple({false, LossMark::dict({{"loss", true}})})),
            "loss spec: outputs[1][\"loss\"] is marked as the loss, but it is the constant 0.5; mark one value that "
            "the model computes");
  EXPECT_EQ(refusal(tuple({value(0)}), LossMark(true)),
            "loss spec: outputs is marked as the loss, but it is a tuple of 1; mark one value that the model computes");
}

TEST(LossMark, RefusesASpecWithoutALoss) {
  EXPECT_EQ(refusal(value(0), LossMark(false)),
            "loss spec: false marks no output as the loss; mark one with true, or give no spec");
  const std::string why = " has a spec without a true in it; mark the loss there, or say false for the whole of it";
  EXPECT_EQ(refusal(tuple({value(0), value(1)}), LossMark::tuple({false, false})), "loss spec: outputs" + why);
  EXPECT_EQ(refusal(dict({"a"}, {value(0)}), LossMark::dict({{"a", false}})), "loss spec: outputs" + why);
  EXPECT_EQ(refusal(tuple({}), LossMark::list({})), "loss spec: outputs" + why);
  EXPECT_EQ(refusal(tuple({list({value(0)}), value(1)}), LossMark::tuple({LossMark::list({false}), true})),
            "loss spec: outputs[0]" + why)
      << "even where a later one has it";
}

TEST(LossMark, RefusesAKeyTwice) { EXPECT_THROW(LossMark::dict({{"loss", true}, {"loss", false}}), InputError); }

}  // namespace
}  // namespace plumbline::split
