// torchgpipe's tests of the interface (tests/skip/test_api.py, test_stash_pop.py, test_tracker.py), each under its
// name, and cases that torchgpipe leaves open.
#include "runtime/skip/skippable.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>

#include <sstream>
#include <thread>
#include <unordered_set>

#include "runtime/capture/pipe_modules.h"
#include "runtime/skip/testing/skip_layers.h"
#include "runtime/testing/refusal.h"

namespace plumbline::skip {
namespace {

at::Tensor forty_two() { return at::full({1}, 42.0); }

/// Each test begins with nothing stashed.
class Skippables : public ::testing::Test {
 protected:
  SkipTracker tracker_;
  SkipTrackerScope scope_{tracker_};
};

// --- test_api.py ---

TEST(SkipNamespaces, namespace_difference) {
  const SkipNamespace ns1, ns2;
  EXPECT_NE(ns1, ns2);
  EXPECT_LT(ns1, ns2);
  EXPECT_LT(SkipNamespace::common(), ns1);
  EXPECT_EQ((std::unordered_set<SkipNamespace>{ns1, ns2, SkipNamespace::common()}.size()), 3u);
}

TEST(SkipNamespaces, namespace_copy) {
  const SkipNamespace ns, copy = ns;
  EXPECT_EQ(ns, copy);
  EXPECT_EQ(std::hash<SkipNamespace>{}(ns), std::hash<SkipNamespace>{}(copy));
}

class Body : public torch::nn::Module {
 public:
  inline static const SkipNames skips{.stash = {"hello"}};
  SkipForward<> forward(at::Tensor x) {
    co_yield stash("hello", x);
    co_return at::mul(x, 2);
  }
};

TEST_F(Skippables, skippable_repr) {
  std::ostringstream text;
  text << *skippable<Body>();
  EXPECT_EQ(text.str(), "@skippable(plumbline::skip::(anonymous namespace)::Body)");
}

class BodyThatPrints : public Body {
 public:
  void pretty_print(std::ostream& stream) const override { stream << "hello"; }
};

TEST_F(Skippables, ABodyPrintsAsItDoesAlone) {
  std::ostringstream text;
  text << *skippable<BodyThatPrints>();
  EXPECT_EQ(text.str(), "@skippable(hello)");
}

// --- test_stash_pop.py ---

TEST_F(Skippables, stash) {
  EXPECT_TRUE(tracker_.kept().empty());
  stashing("foo")->forward(forty_two());
  ASSERT_EQ(tracker_.kept().size(), 1u);
  EXPECT_EQ(tracker_.kept()[0], (SkipKey{SkipNamespace::common(), "foo"}));
}

TEST_F(Skippables, pop) {
  stashing("foo")->forward(forty_two());
  EXPECT_TRUE(at::equal(popping("foo")->forward(forty_two()), at::full({1}, 84.0)));
  EXPECT_TRUE(tracker_.kept().empty());
}

class UsesNothing : public torch::nn::Module {
 public:
  explicit UsesNothing(SkipNames names) : skips(std::move(names)) {}
  at::Tensor forward(at::Tensor x) { return at::mul(x, 2); }
  const SkipNames skips;
};

TEST_F(Skippables, declare_but_not_use) {
  EXPECT_EQ(testing::refusal([] { skippable<UsesNothing>(SkipNames{{"foo"}, {}})->forward(forty_two()); }),
            "'foo' must be stashed but have not");
  tracker_.save({SkipNamespace::common(), "foo"}, forty_two());
  EXPECT_EQ(testing::refusal([] { skippable<UsesNothing>(SkipNames{{}, {"foo"}})->forward(forty_two()); }),
            "'foo' must be popped but have not");
}

TEST_F(Skippables, SeveralThatAreNotUsedComeInOrder) {
  EXPECT_EQ(testing::refusal([] { skippable<UsesNothing>(SkipNames{{"c", "a", "b"}, {}})->forward(forty_two()); }),
            "'a', 'b', 'c' must be stashed but have not");
}

/// Executes given commands, whatever its declarations.
class Told : public torch::nn::Module {
 public:
  Told(SkipNames names, std::vector<std::string> stashes, std::vector<std::string> pops)
      : skips(std::move(names)), stashes_(std::move(stashes)), pops_(std::move(pops)) {}
  SkipForward<> forward(at::Tensor x) {
    for (const std::string& name : stashes_) co_yield plumbline::stash(name, x);
    for (const std::string& name : pops_) (void)(co_yield plumbline::pop(name));
    co_return x;
  }
  const SkipNames skips;

 private:
  const std::vector<std::string> stashes_, pops_;
};

std::string told(SkipNames names, std::vector<std::string> stashes, std::vector<std::string> pops) {
  return testing::refusal([&] { skippable<Told>(names, stashes, pops)->forward(forty_two()); });
}

TEST_F(Skippables, stash_not_declared) {
  EXPECT_EQ(told({}, {"foo"}, {}), "'foo' has not been declared as stashable (none is)");
  EXPECT_EQ(told({{"bar"}, {}}, {"foo"}, {}), "'foo' has not been declared as stashable (declared: 'bar')");
}

TEST_F(Skippables, pop_not_declared) {
  stashing("foo")->forward(forty_two());
  EXPECT_EQ(told({}, {}, {"foo"}), "'foo' has not been declared as poppable (none is)");
  EXPECT_EQ(tracker_.kept().size(), 1u) << "a stashed tensor stays for the module that declares it";
}

TEST_F(Skippables, pop_not_stashed) {
  EXPECT_EQ(testing::refusal([] { popping("foo")->forward(forty_two()); }), "'foo' has not been stashed");
}

TEST_F(Skippables, stash_none) {
  class StashNone : public torch::nn::Module {
   public:
    const SkipNames skips{.stash = {"foo"}};
    SkipForward<> forward(at::Tensor x) {
      co_yield plumbline::stash("foo", {});
      co_return x;
    }
  };
  skippable<StashNone>()->forward(forty_two());
  EXPECT_EQ(tracker_.kept().size(), 1u);
  EXPECT_TRUE(at::equal(popping("foo")->forward(forty_two()), forty_two())) << "None comes as an undefined tensor";
}

// --- cases that torchgpipe leaves open ---

TEST_F(Skippables, StashedTwiceInOneForwardIsRefused) {
  EXPECT_EQ(told({{"foo"}, {}}, {"foo", "foo"}, {}), "'foo' has been stashed already");
}

TEST_F(Skippables, PoppedTwiceInOneForwardIsRefused) {
  stashing("foo")->forward(forty_two());
  EXPECT_EQ(told({{}, {"foo"}}, {}, {"foo", "foo"}), "'foo' has been popped already");
}

TEST_F(Skippables, IsolatingANameThatIsNotDeclaredIsRefused) {
  const auto module = layer({{"a"}, {"b"}});
  EXPECT_EQ(testing::refusal([&] { module->isolate(SkipNamespace(), {"a", "c"}); }),
            "isolate: 'c' has not been declared as stashable or as poppable (declared: 'a', 'b')");
  EXPECT_EQ(module->key("a").ns, SkipNamespace::common()) << "nothing of a refused call stays";
}

TEST_F(Skippables, NamespacesKeepNamesApart) {
  const SkipNamespace ns1, ns2;
  stashing("foo")->isolate(ns1)->forward(forty_two());
  EXPECT_EQ(testing::refusal([&] { popping("foo")->isolate(ns2)->forward(forty_two()); }),
            "'foo' has not been stashed");
  EXPECT_EQ(testing::refusal([&] { popping("foo")->forward(forty_two()); }), "'foo' has not been stashed");
  EXPECT_TRUE(at::equal(popping("foo")->isolate(ns1)->forward(forty_two()), at::full({1}, 84.0)));
}

TEST_F(Skippables, SomeNamesOrAllAreIsolatedAndTheLastCallCounts) {
  const SkipNamespace ns1, ns2;
  const auto module = layer({{"a"}, {"b"}});
  EXPECT_EQ(module->isolate(ns1, {"a"}), module);
  EXPECT_EQ(module->key("a").ns, ns1);
  EXPECT_EQ(module->key("b").ns, SkipNamespace::common());
  module->isolate(ns2);
  EXPECT_EQ(module->key("a").ns, ns2);
  EXPECT_EQ(module->key("b").ns, ns2);
}

// The semantics of a generator's commands: popped tensors existed before the body, stashed ones are visible after it.
TEST_F(Skippables, StashingBecomesVisibleAfterTheForwardAndPoppingIsFetchedBefore) {
  class Looks : public torch::nn::Module {
   public:
    const SkipNames skips{.stash = {"out"}, .pop = {"in"}};
    SkipForward<> forward(at::Tensor x) {
      kept_first = current_skip_tracker().kept().size();
      co_yield plumbline::stash("out", x);
      kept_after_stash = current_skip_tracker().kept().size();
      co_return co_yield plumbline::pop("in");
    }
    size_t kept_first = 9, kept_after_stash = 9;
  };
  stashing("in")->forward(forty_two());
  const auto module = skippable<Looks>();
  EXPECT_TRUE(at::equal(module->forward(at::ones({1})), forty_two()));
  EXPECT_EQ(module->kept_first, 0u);
  EXPECT_EQ(module->kept_after_stash, 0u);
  EXPECT_EQ(tracker_.kept().size(), 1u);
}

TEST_F(Skippables, AForwardThatThrowsStashesNothing) {
  class Throws : public torch::nn::Module {
   public:
    const SkipNames skips{.stash = {"foo"}};
    SkipForward<> forward(at::Tensor x) {
      co_yield plumbline::stash("foo", x);
      throw std::runtime_error("the body's own");
      co_return x;
    }
  };
  EXPECT_THROW(skippable<Throws>()->forward(forty_two()), std::runtime_error);
  EXPECT_TRUE(tracker_.kept().empty());
}

template <class Promise, class Operand>
concept TakesYielded = requires(Promise& promise, Operand operand) { promise.yield_value(operand); };
template <class Promise, class Operand>
concept TakesAwaited = requires(Promise& promise, Operand operand) { promise.await_transform(operand); };

// The counterpart of "is not a command from @skippable", as a compile error.
TEST_F(Skippables, OnlyCommandsCanBeYielded) {
  using Promise = SkipForward<>::promise_type;
  static_assert(TakesYielded<Promise, StashCommand> && TakesYielded<Promise, PopCommand>);
  static_assert(!TakesYielded<Promise, at::Tensor> && !TakesYielded<Promise, int>);
  static_assert(!TakesAwaited<Promise, std::suspend_always>);
}

TEST_F(Skippables, SeveralInputsAndOutputs) {
  class TwoToTwo : public torch::nn::Module {
   public:
    const SkipNames skips{.stash = {"sum"}};
    SkipForward<std::vector<at::Tensor>> forward(const at::Tensor& a, at::Tensor b) {
      co_yield plumbline::stash("sum", at::add(a, b));
      co_return std::vector<at::Tensor>{b, a};
    }
  };
  const at::Tensor a = at::full({1}, 1.0), b = at::full({1}, 2.0);
  const std::vector<at::Tensor> swapped = skippable<TwoToTwo>()->forward(a, b);
  EXPECT_TRUE(swapped[0].is_same(b) && swapped[1].is_same(a));
  EXPECT_TRUE(at::equal(popping("sum")->forward(at::full({1}, 0.0)), at::full({1}, 3.0)));
}

TEST_F(Skippables, WorkInATorchSequential) {
  torch::nn::Sequential model(stashing("foo"), Plain(), popping("foo"));
  EXPECT_TRUE(at::equal(model->forward(forty_two()), at::full({1}, 84.0)));
}

TEST_F(Skippables, WorkInASequenceAndKeepTheirParametersNames) {
  class WithParameter : public torch::nn::Module {
   public:
    const SkipNames skips{.stash = {"foo"}};
    at::Tensor weight = register_parameter("weight", at::full({1}, 2.0));
    SkipForward<> forward(at::Tensor x) {
      co_yield plumbline::stash("foo", x);
      co_return at::mul(x, weight);
    }
  };
  Sequence model(skippable<WithParameter>(), popping("foo"));
  EXPECT_TRUE(at::equal(model->forward(forty_two()), at::full({1}, 126.0)));
  ASSERT_EQ(model->named_parameters().size(), 1u);
  EXPECT_TRUE(model->named_parameters().contains("0.weight"));
}

// --- test_tracker.py ---

TEST(SkipTrackers, default_skip_tracker) { EXPECT_EQ(&current_skip_tracker(), &current_skip_tracker()); }

TEST(SkipTrackers, default_skip_tracker_by_data_parallel) {
  // Threads that run copies of a model at the same time do not see one another's skips.
  stashing("foo")->forward(forty_two());
  std::string other;
  std::thread([&] { other = testing::refusal([] { popping("foo")->forward(forty_two()); }); }).join();
  EXPECT_EQ(other, "'foo' has not been stashed");
  EXPECT_EQ(testing::refusal([] { popping("foo")->forward(forty_two()); }), "accepted");
}

TEST(SkipTrackers, AScopeHidesWhatWasStashedOutsideIt) {
  stashing("foo")->forward(forty_two());
  {
    SkipTracker fresh;
    const SkipTrackerScope scope(fresh);
    EXPECT_EQ(testing::refusal([] { popping("foo")->forward(forty_two()); }), "'foo' has not been stashed");
  }
  EXPECT_EQ(testing::refusal([] { popping("foo")->forward(forty_two()); }), "accepted");
}

// A forward that failed between stash and pop leaves its skip behind.
TEST(SkipTrackers, ALaterSkipReplacesOneLeftOver) {
  SkipTracker tracker;
  tracker.save({.name = "foo"}, at::ones({1}));
  tracker.save({.name = "foo"}, forty_two());
  EXPECT_TRUE(at::equal(tracker.load({.name = "foo"}).value(), forty_two()));
  EXPECT_FALSE(tracker.load({.name = "foo"}).has_value());
}

// Only the tracker holds a skip, and nothing holds it once it is popped.
TEST_F(Skippables, reuse_portal_tensor_life) {
  c10::weak_intrusive_ptr<c10::TensorImpl> life(at::ones({1}).getIntrusivePtr());
  {
    at::Tensor x = at::ones({1});
    life = c10::weak_intrusive_ptr<c10::TensorImpl>(x.getIntrusivePtr());
    stashing("foo")->forward(std::move(x));
  }
  EXPECT_FALSE(life.expired()) << "stashed";
  popping("foo")->forward(forty_two());
  EXPECT_TRUE(life.expired()) << "popped";
}

}  // namespace
}  // namespace plumbline::skip
