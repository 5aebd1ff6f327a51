#include "runtime/transport/machine/clock_offset.h"
#include "runtime/clock.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/testing/spawn.h"

namespace plumbline::transport {
namespace {

using testing::with_ranks;

Deadline patience() { return Deadline::after(std::chrono::seconds(20)); }

void expect_offsets(int ranks, double ahead) {
  with_ranks(ranks, [ahead](Transport& transport) {
    // Ranks of a test share one clock, so that the true offsets are known.
    const double skew = ahead * transport.rank();
    const ClockOffset offset = measure_clock_offset(transport, patience(), [skew] { return clock_seconds() + skew; });
    // The rounding of these sums of seconds, a few ulp, is not in the bound.
    EXPECT_LE(std::abs(offset.seconds - skew), offset.error + 1e-6) << "rank " << transport.rank();
    EXPECT_LT(offset.error, 10) << "half of a round trip";
    EXPECT_EQ(transport.rank() == 0, offset.error == 0);
    EXPECT_EQ(correction(offset), ahead == 0 ? 0 : offset.seconds) << "rank " << transport.rank();
  });
}

TEST(ClockOffset, OneClock2Ranks) { expect_offsets(2, 0); }
TEST(ClockOffset, OneClock8Ranks) { expect_offsets(8, 0); }
TEST(ClockOffset, LateClocks2Ranks) { expect_offsets(2, -1000); }
TEST(ClockOffset, EarlyClocks8Ranks) { expect_offsets(8, 1000); }

}  // namespace
}  // namespace plumbline::transport
