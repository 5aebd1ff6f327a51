#include <gtest/gtest.h>

#include <limits>

#include "runtime/transport/transport.h"

namespace plumbline::transport {
namespace {

TEST(Deadline, ALimitInSecondsKeepsItsFraction) {
  EXPECT_EQ(from_seconds(0), Clock::duration());
  EXPECT_EQ(from_seconds(1.5), std::chrono::milliseconds(1500));
}

TEST(Deadline, ALimitOfAnyLengthLiesAhead) {
  for (const double seconds : {1e9, 9.3e9, 1e300, std::numeric_limits<double>::infinity()}) {
    const Clock::duration limit = from_seconds(seconds);
    EXPECT_EQ(limit, std::chrono::seconds(1'000'000'000)) << seconds;
    EXPECT_FALSE(Deadline::after(limit).passed()) << seconds;
    EXPECT_FALSE(Deadline::after(2 * limit).passed()) << seconds;
    EXPECT_FALSE(Deadline::patient(limit).passed()) << seconds;
  }
}

}  // namespace
}  // namespace plumbline::transport
