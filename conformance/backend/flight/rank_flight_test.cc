#include "conformance/backend/flight/rank_flight.h"

#include <gtest/gtest.h>

#include "runtime/error.h"
#include "runtime/testing/spawn.h"
#include "runtime/transport/collectives.h"

namespace plumbline::conformance {
namespace {

using namespace std::chrono_literals;
using transport::Deadline;
using transport::Transport;

Deadline limit() { return Deadline::after(20s); }

TEST(RankFlight, WithoutAFolderAWaitInVainSaysWhoWaitsForWhom) {
  testing::with_ranks(2, [](Transport& transport) {
    const auto wait_for_the_other = [&](Transport& logged) {
      double never = 0;
      transport::Request request = logged.irecv(&never, sizeof never, 1 - transport.rank(), 7);
      logged.wait(request, Deadline::after(300ms), "a gradient");
    };
    try {
      with_flight_log(transport, limit(), wait_for_the_other);
      ADD_FAILURE() << "nothing was sent";
    } catch (const TimeoutError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("a gradient; a cycle of waits: rank 0 waits for rank 1 since "), std::string::npos) << text;
      EXPECT_NE(text.find(", rank 1 waits for rank 0 since "), std::string::npos) << text;
    }
    transport::barrier(transport, limit());
  });
}

TEST(RankFlight, OtherErrorsAndResultsPassThrough) {
  testing::with_ranks(2, [](Transport& transport) {
    EXPECT_THROW(with_flight_log(transport, limit(), [](Transport&) { throw InputError("unknown"); }), InputError);
    int of_rank_0 = 0;
    with_flight_log(transport, limit(), [&](Transport& logged) {
      of_rank_0 = transport::agree_on(logged, 5 + logged.rank(), limit());
    });
    EXPECT_EQ(of_rank_0, 5);
  });
}

}  // namespace
}  // namespace plumbline::conformance
