// Compares our orders with those of PyTorch 2.15, cell by cell, by the hashes that scripts/pytorch_schedules recorded.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/testing/goldens.h"
#include "runtime/schedule/text/csv.h"

namespace plumbline::schedule {
namespace {

TEST(PyTorchOrders, EqualCellByCell) {
  EXPECT_EQ(testing::fnv1a("foobar"), "85944171f73967e8") << "the hash as its authors give it";
  std::map<std::string, int> compared;
  int all = 0;
  for (const testing::Golden& golden : testing::pytorch_goldens()) {
    if (golden.form != "compute") continue;
    const Schedule schedule = make_schedule(golden.request);
    EXPECT_EQ(testing::fnv1a(to_csv(schedule)), golden.hash) << golden.line << "\n" << to_csv(schedule);
    ++compared[golden.of_class];
    ++all;
  }
  EXPECT_EQ(compared.size(), 7u);
  for (const auto& [of_class, number] : compared) EXPECT_GE(number, 20) << of_class;
  EXPECT_GE(all, 250);
}

}  // namespace
}  // namespace plumbline::schedule
