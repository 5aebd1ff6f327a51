// torchgpipe's tests/skip/test_verify_skippables.py, each test under its name, and cases beyond them.
#include "runtime/skip/verify_skippables.h"

#include <gtest/gtest.h>

#include "runtime/capture/pipe_modules.h"
#include "runtime/skip/testing/skip_layers.h"
#include "runtime/testing/refusal.h"

namespace plumbline::skip {
namespace {

const std::string head = "one or more pairs of stash and pop do not match:\n";

template <class... Layers>
std::string problems(Layers... layers) {
  return testing::refusal([&] { verify_skippables(*Sequence(layers...)); });
}

TEST(VerifySkippables, matching) { EXPECT_EQ(problems(stashing("foo"), popping("foo")), "accepted"); }

TEST(VerifySkippables, stash_not_pop) {
  EXPECT_EQ(problems(stashing("foo")), head + "\n* no module declared 'foo' as poppable but stashed");
}

TEST(VerifySkippables, pop_unknown) {
  EXPECT_EQ(problems(popping("foo")), head + "\n* '0' declared 'foo' as poppable but it was not stashed");
}

TEST(VerifySkippables, stash_again) {
  EXPECT_EQ(problems(stashing("foo"), stashing("foo"), popping("foo")),
            head + "\n* '1' redeclared 'foo' as stashable but not isolated by namespace");
}

TEST(VerifySkippables, pop_again) {
  EXPECT_EQ(problems(stashing("foo"), popping("foo"), popping("foo")),
            head + "\n* '2' redeclared 'foo' as poppable but not isolated by namespace");
}

TEST(VerifySkippables, stash_pop_together_different_names) {
  EXPECT_EQ(problems(stashing("foo"), layer({{"bar"}, {"foo"}}), popping("bar")), "accepted");
}

TEST(VerifySkippables, stash_pop_together_same_name) {
  EXPECT_EQ(problems(layer({{"foo"}, {"foo"}})), head + "\n* '0' declared 'foo' both as stashable and as poppable");
}

TEST(VerifySkippables, double_stash_pop) {
  EXPECT_EQ(problems(stashing("foo"), popping("foo"), stashing("foo"), popping("foo")),
            head +
                "\n* '2' redeclared 'foo' as stashable but not isolated by namespace"
                "\n* '3' redeclared 'foo' as poppable but not isolated by namespace");
}

TEST(VerifySkippables, double_stash_pop_but_isolated) {
  const SkipNamespace ns1, ns2;
  EXPECT_EQ(problems(stashing("foo")->isolate(ns1), popping("foo")->isolate(ns1), stashing("foo")->isolate(ns2),
                     popping("foo")->isolate(ns2)),
            "accepted");
}

TEST(VerifySkippables, AnotherNamespaceIsAnotherName) {
  const SkipNamespace ns;
  EXPECT_EQ(problems(stashing("foo"), popping("foo")->isolate(ns)),
            head +
                "\n* '1' declared 'foo' as poppable but it was not stashed"
                "\n* no module declared 'foo' as poppable but stashed");
}

TEST(VerifySkippables, EverythingAtOnceAndInOrder) {
  EXPECT_EQ(problems(layer({{"c", "b", "same"}, {"z", "y", "same"}}), layer({{"b"}, {"c", "x"}})),
            head +
                "\n* '0' declared 'same' both as stashable and as poppable"
                "\n* '0' declared 'y' as poppable but it was not stashed"
                "\n* '0' declared 'z' as poppable but it was not stashed"
                "\n* '1' redeclared 'b' as stashable but not isolated by namespace"
                "\n* '1' declared 'x' as poppable but it was not stashed"
                "\n* no module declared 'b' as poppable but stashed");
}

TEST(VerifySkippables, ThroughNestedContainers) {
  EXPECT_EQ(problems(Sequence(stashing("foo")), Sequence(std::make_shared<Plain>(), popping("foo"))), "accepted");
  EXPECT_EQ(problems(Sequence(std::make_shared<Plain>(), Sequence(std::make_shared<Plain>(), popping("foo"))),
                     stashing("foo")),
            head +
                "\n* '0.1.1' declared 'foo' as poppable but it was not stashed"
                "\n* no module declared 'foo' as poppable but stashed");
}

/// Stashes "outer" around a child.
class Around : public torch::nn::Module {
 public:
  Around(SkipNames names, std::shared_ptr<Layer> inner)
      : skips(std::move(names)), inner_(register_module("inner", std::move(inner))) {}
  SkipForward<> forward(at::Tensor x) {
    for (const std::string& name : skips.stash) co_yield stash(name, x);
    for (const std::string& name : skips.pop) (void)(co_yield pop(name));
    co_return call(inner_, x);
  }
  const SkipNames skips;

 private:
  std::shared_ptr<Layer> inner_;
};

/// The error of a run whose declarations are wrong.
template <class Model>
std::string run(Model model) {
  SkipTracker tracker;
  const SkipTrackerScope scope(tracker);
  return testing::refusal([&] { model->forward(at::Tensor()); });
}

// A skippable module inside another runs between its pops and its stashes, as a run of the model shows.
TEST(VerifySkippables, InsideAnotherSkippableModule) {
  const auto fits = [] {
    return Sequence(stashing("a"), skippable<Around>(SkipNames{{"b"}, {"a"}}, layer({{"c"}, {}})),
                    layer({{}, {"b", "c"}}));
  };
  EXPECT_EQ(testing::refusal([&] { verify_skippables(*fits()); }), "accepted");
  EXPECT_EQ(run(fits()), "accepted");

  const auto too_early = [] { return Sequence(skippable<Around>(SkipNames{{"b"}, {}}, popping("b"))); };
  EXPECT_EQ(testing::refusal([&] { verify_skippables(*too_early()); }),
            head +
                "\n* '0.inner' declared 'b' as poppable but it was not stashed"
                "\n* no module declared 'b' as poppable but stashed");
  EXPECT_EQ(run(too_early()), "'b' has not been stashed");

  EXPECT_EQ(problems(skippable<Around>(SkipNames{{"b"}, {"x"}}, stashing("b")), popping("b")),
            head +
                "\n* '0' redeclared 'b' as stashable but not isolated by namespace"
                "\n* '0' declared 'x' as poppable but it was not stashed");
}

TEST(VerifySkippables, TheSameInstanceTwiceIsSaidToBeThat) {
  const auto twice = stashing("foo");
  EXPECT_EQ(problems(twice, popping("foo"), twice),
            head + "\n* '2' is the same module as '0', whose names are stashed and popped once");
}

}  // namespace
}  // namespace plumbline::skip
