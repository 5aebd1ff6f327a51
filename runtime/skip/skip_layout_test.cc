// torchgpipe's tests/skip/test_inspect_skip_layout.py, each test under its name, and cases that torchgpipe leaves open.
#include "runtime/skip/skip_layout.h"

#include <gtest/gtest.h>

#include "runtime/capture/pipe_modules.h"
#include "runtime/skip/testing/skip_layers.h"
#include "runtime/testing/refusal.h"

namespace plumbline::skip {
namespace {

using Routes = std::vector<SkipRoute>;

const SkipNamespace common = SkipNamespace::common();

std::shared_ptr<Plain> pass() { return std::make_shared<Plain>(); }

TEST(SkipLayout, no_skippables) {
  const SkipLayout layout = inspect_skip_layout(*Sequence(pass(), pass()), {1, 1});
  EXPECT_EQ(layout.copies_to(0), Routes{});
  EXPECT_EQ(layout.copies_to(1), Routes{});
}

TEST(SkipLayout, inner_partition) {
  const SkipLayout layout = inspect_skip_layout(*Sequence(stashing("foo"), popping("foo"), pass()), {2, 1});
  EXPECT_EQ(layout.copies_to(0), Routes{});
  EXPECT_EQ(layout.copies_to(1), Routes{});
  EXPECT_EQ(layout.routes(), (Routes{{0, 0, {common, "foo"}}}));
  EXPECT_FALSE(layout.requires_copy({common, "foo"}));
}

TEST(SkipLayout, adjoining_partitions) {
  const SkipLayout layout = inspect_skip_layout(*Sequence(stashing("foo"), popping("foo")), {1, 1});
  EXPECT_EQ(layout.copies_to(0), Routes{});
  EXPECT_EQ(layout.copies_to(1), (Routes{{0, 1, {common, "foo"}}}));
  EXPECT_TRUE(layout.requires_copy({common, "foo"}));
  EXPECT_FALSE(layout.requires_copy({common, "bar"})) << "not known";
}

TEST(SkipLayout, far_partitions) {
  const SkipLayout layout = inspect_skip_layout(*Sequence(stashing("foo"), pass(), popping("foo")), {1, 1, 1});
  EXPECT_EQ(layout.copies_to(1), Routes{});
  EXPECT_EQ(layout.copies_to(2), (Routes{{0, 2, {common, "foo"}}}));
}

TEST(SkipLayout, pop_2_from_different_partitions) {
  const SkipLayout layout =
      inspect_skip_layout(*Sequence(stashing("foo"), stashing("bar"), layer({{}, {"foo", "bar"}})), {1, 1, 1});
  // sorted by source partition, not by name
  EXPECT_EQ(layout.copies_to(2), (Routes{{0, 2, {common, "foo"}}, {1, 2, {common, "bar"}}}));
}

TEST(SkipLayout, namespace) {
  const SkipNamespace ns;
  const SkipLayout layout =
      inspect_skip_layout(*Sequence(stashing("foo")->isolate(ns), popping("foo")->isolate(ns)), {1, 1});
  EXPECT_EQ(layout.copies_to(1), (Routes{{0, 1, {ns, "foo"}}}));
}

// Two skips of one route, one of them isolated: torchgpipe cannot sort them.
TEST(SkipLayout, IsolatedBesideNot) {
  const SkipNamespace ns;
  const SkipLayout layout = inspect_skip_layout(
      *Sequence(stashing("foo")->isolate(ns), stashing("foo"), popping("foo")->isolate(ns), popping("foo")), {2, 2});
  EXPECT_EQ(layout.copies_to(1), (Routes{{0, 1, {common, "foo"}}, {0, 1, {ns, "foo"}}}));
}

TEST(SkipLayout, InsideContainers) {
  const SkipLayout layout =
      inspect_skip_layout(*Sequence(Sequence(pass(), stashing("foo")), Sequence(popping("foo"))), {1, 1});
  EXPECT_EQ(layout.copies_to(1), (Routes{{0, 1, {common, "foo"}}}));
}

TEST(SkipLayout, WhatDoesNotFitIsRefused) {
  EXPECT_EQ(testing::refusal([] { inspect_skip_layout(*Sequence(popping("foo"), stashing("foo")), {1, 1}); }),
            "one or more pairs of stash and pop do not match:\n"
            "\n* '0' declared 'foo' as poppable but it was not stashed"
            "\n* no module declared 'foo' as poppable but stashed");
  const std::string accepted = "the sequence has 2 children; give how many of them, at least 1, each partition has";
  EXPECT_EQ(testing::refusal([] { inspect_skip_layout(*Sequence(pass(), pass()), {1, 2}); }),
            "balance [1, 2]: " + accepted);
  EXPECT_EQ(testing::refusal([] { inspect_skip_layout(*Sequence(pass(), pass()), {3, -1}); }),
            "balance [3, -1]: " + accepted);
  EXPECT_EQ(testing::refusal([] { inspect_skip_layout(*Sequence(pass(), pass()), {}); }), "balance []: " + accepted);
}

}  // namespace
}  // namespace plumbline::skip
