#include <gtest/gtest.h>

#include "runtime/partition/partition.h"
#include "runtime/testing/refusal.h"

namespace plumbline {
namespace {

TEST(PartitionMode, WhatIsReadIsWrittenAlike) {
  for (const char* text :
       {"default", "min-cut", "aggressive", "bytes", "budget=0", "budget=0.25", "budget=1", "budget=0.1:peak",
        "budget=0.5:greedy", "budget=0.5:peak:knee-point", "budget=0.5:hirschberg"})
    EXPECT_EQ(to_string(parse_partition_mode(text)), text);
  EXPECT_EQ(to_string(parse_partition_mode("budget=0.50:exact")), "budget=0.5");
}

TEST(PartitionMode, FieldsAreFilled) {
  const PartitionOptions options = parse_partition_mode("budget=0.25:peak:greedy");
  EXPECT_EQ(options.mode, PartitionMode::Budget);
  EXPECT_EQ(options.budget, 0.25);
  EXPECT_EQ(options.measure, BudgetMeasure::Peak);
  EXPECT_EQ(options.solver, KnapsackSolver::Greedy);
}

TEST(PartitionMode, AnythingElseIsRefused) {
  for (const char* text : {"", "min_cut", "Default", "budget", "budget=", "budget=1.5", "budget=-0.1", "budget=nan",
                           "budget=0.5x", "budget=0.5:", "budget=0.5:peek", "default:peak"}) {
    const std::string why = refusal([&] { parse_partition_mode(text); });
    expect_part(why,
                "the mode '" + std::string(text) + "' is none of default, min-cut, aggressive, bytes and budget=X");
  }
}

}  // namespace
}  // namespace plumbline
