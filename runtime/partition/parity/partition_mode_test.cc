#include <gtest/gtest.h>

#include "runtime/partition/parity/partition_mode.h"
#include "runtime/partition/partition.h"
#include "runtime/testing/refusal.h"

namespace plumbline::partition {
namespace {

TEST(PartitionMode, WhatIsReadIsWrittenAlike) {
  for (const char* text :
       {"default", "min-cut", "aggressive", "bytes", "budget=0", "budget=0.25", "budget=1", "budget=0.1:peak",
        "budget=0.5:greedy", "budget=0.5:knee-point", "budget=0.5:hirschberg", "budget=0.5:bytes"})
    EXPECT_EQ(to_string(parse_partition_mode(text)), text);
  EXPECT_EQ(to_string(parse_partition_mode("budget=0.50:exact")), "budget=0.5");
}

TEST(PartitionMode, FieldsAreFilled) {
  const PartitionOptions peak = parse_partition_mode("budget=0.25:peak"),
                         greedy = parse_partition_mode("budget=0.25:greedy");
  for (const PartitionOptions& options : {peak, greedy}) {
    EXPECT_EQ(options.mode, PartitionMode::Budget);
    EXPECT_EQ(options.budget, 0.25);
  }
  EXPECT_EQ(peak.measure, BudgetMeasure::Peak);
  EXPECT_EQ(greedy.measure, BudgetMeasure::Saved);
  EXPECT_EQ(greedy.solver.name, "greedy");
}

TEST(PartitionMode, AnythingElseIsRefused) {
  for (const char* text : {"", "min_cut", "Default", "budget", "budget=", "budget=1.5", "budget=-0.1", "budget=nan",
                           "budget=0.5x", "budget=0.5:", "budget=0.5:peek", "default:peak",
                           // A peak budget takes no solver, and others take only one: an extra word is rejected, not
                           // ignored.
                           "budget=0.5:peak:greedy", "budget=0.5:greedy:peak", "budget=0.5:exact:greedy"}) {
    const std::string why = testing::refusal([&] { parse_partition_mode(text); });
    testing::expect_part(
        why, "the mode '" + std::string(text) + "' is none of default, min-cut, aggressive, bytes and budget=X");
  }
}

}  // namespace
}  // namespace plumbline::partition
