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

void receive(Transport& transport, int peer, const Deadline& deadline, const char* context) {
  double value = 0;
  transport::Request request = transport.irecv(&value, sizeof value, peer, 7);
  transport.wait(request, deadline, context);
}

TEST(RankFlight, WithoutAFolderAWaitInVainSaysWhoWaitsForWhom) {
  testing::with_ranks(2, [](Transport& transport) {
    if (transport.rank() == 1) {
      with_flight_log(transport, 1s, [](Transport& logged) { receive(logged, 0, limit(), "an output"); });
      return;
    }
    try {
      with_flight_log(transport, 1s,
                      [](Transport& logged) { receive(logged, 1, Deadline::after(300ms), "a gradient"); });
      ADD_FAILURE() << "nothing was sent";
    } catch (const TimeoutError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("a gradient; a cycle of waits: rank 0 waits for rank 1 since "), std::string::npos) << text;
      EXPECT_NE(text.find("(an output)"), std::string::npos) << text;
    }
    const double value = 1;
    transport::Request request = transport.isend(&value, sizeof value, 1, 7);
    transport.wait(request, limit(), "the output");
    transport::barrier(transport, limit());  // rank 1 stays until all are done
  });
}

TEST(RankFlight, OtherErrorsAndResultsPassThrough) {
  testing::with_ranks(2, [](Transport& transport) {
    EXPECT_THROW(with_flight_log(transport, 1s, [](Transport&) { throw InputError("unknown"); }), InputError);
    int of_rank_0 = 0;
    with_flight_log(transport, 1s,
                    [&](Transport& logged) { of_rank_0 = transport::agree_on(logged, 5 + logged.rank(), limit()); });
    EXPECT_EQ(of_rank_0, 5);
  });
}

}  // namespace
}  // namespace plumbline::conformance
