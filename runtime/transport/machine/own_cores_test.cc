#include "runtime/transport/machine/own_cores.h"

#include <gtest/gtest.h>
#include <sched.h>

namespace plumbline::transport {
namespace {

TEST(OwnCores, AreThoseOfTheBinding) {
  cpu_set_t before, one;
  CPU_ZERO(&one);
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(own_cores().size(), static_cast<size_t>(CPU_COUNT(&before)));
  const int last = own_cores().back();
  CPU_SET(last, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(own_cores(), std::vector{last});
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace plumbline::transport
