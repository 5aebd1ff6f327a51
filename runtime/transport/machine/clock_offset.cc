#include "runtime/transport/machine/clock_offset.h"

#include <cmath>

#include "runtime/transport/collectives.h"

namespace plumbline::transport {
namespace {

constexpr int64_t kTag = -4;
constexpr int kRoundTrips = 16;

void exchange_with(Transport& transport, int peer, double& theirs, const double& mine, const Deadline& deadline) {
  Request receive = transport.irecv(&theirs, sizeof theirs, peer, kTag);
  Request send = transport.isend(&mine, sizeof mine, peer, kTag);
  transport.wait(send, deadline, "clock offset");
  transport.wait(receive, deadline, "clock offset");
}

/// Rank 0's part: answers with its time.
void answer(Transport& transport, int peer, const std::function<double()>& now, const Deadline& deadline) {
  for (int i = 0; i < kRoundTrips; ++i) {
    double ignored = 0;
    Request receive = transport.irecv(&ignored, sizeof ignored, peer, kTag);
    transport.wait(receive, deadline, "clock offset");
    const double time = now();
    Request send = transport.isend(&time, sizeof time, peer, kTag);
    transport.wait(send, deadline, "clock offset");
  }
}

}  // namespace

ClockOffset measure_clock_offset(Transport& transport, const Deadline& deadline, const std::function<double()>& now) {
  ClockOffset best{0, 0};
  if (transport.rank() == 0) {
    for (int peer = 1; peer < transport.size(); ++peer) {
      answer(transport, peer, now, deadline);
      barrier(transport, deadline);
    }
    return best;
  }
  for (int turn = 1; turn < transport.size(); ++turn) {
    if (turn == transport.rank()) {
      best.error = HUGE_VAL;
      for (int i = 0; i < kRoundTrips; ++i) {
        double theirs = 0;
        const double begin = now();
        exchange_with(transport, 0, theirs, begin, deadline);
        const double end = now();
        if ((end - begin) / 2 < best.error) best = {(begin + end) / 2 - theirs, (end - begin) / 2};
      }
    }
    barrier(transport, deadline);
  }
  return best;
}

double correction(const ClockOffset& offset) { return std::abs(offset.seconds) <= offset.error ? 0 : offset.seconds; }

}  // namespace plumbline::transport
