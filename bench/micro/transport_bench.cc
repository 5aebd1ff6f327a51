// The time of a message between two ranks that are threads: half a round trip.
#include <benchmark/benchmark.h>

#include <vector>

#include "runtime/clock.h"
#include "runtime/transport/threads/threads.h"

namespace plumbline::bench {
namespace {

constexpr int kRoundTrips = 2000, kWarmUp = 20;

void ping_pong(transport::Transport& transport, std::vector<char>& data, int round_trips) {
  const int peer = 1 - transport.rank();
  const transport::Deadline deadline = transport::Deadline::after(transport::from_seconds(600));
  const auto send = [&] {
    transport::Request request = transport.isend(data.data(), data.size(), peer, /*tag=*/0);
    transport.wait(request, deadline, "ping-pong: a send");
  };
  const auto receive = [&] {
    transport::Request request = transport.irecv(data.data(), data.size(), peer, /*tag=*/0);
    transport.wait(request, deadline, "ping-pong: a receive");
  };
  for (int i = 0; i < round_trips; ++i) {
    if (transport.rank() == 0) send();
    receive();
    if (transport.rank() == 1) send();
  }
}

/// An iteration is many round trips of state.range(0) bytes; the counter is the time of one message.
void transport_threads(benchmark::State& state) {
  for (auto _ : state) {
    double seconds = 0;
    transport::run_thread_ranks(2, [&](transport::Transport& transport) {
      std::vector<char> data(static_cast<size_t>(state.range(0)));
      ping_pong(transport, data, kWarmUp);
      const transport::Clock::time_point begin = transport::Clock::now();
      ping_pong(transport, data, kRoundTrips);
      if (transport.rank() == 0) seconds = seconds_since(begin);
    });
    state.SetIterationTime(seconds);
  }
  using benchmark::Counter;
  state.counters["half_round_trip"] = Counter(2 * kRoundTrips, Counter::kIsIterationInvariantRate | Counter::kInvert);
}

BENCHMARK(transport_threads)->Arg(64)->Arg(4096)->Arg(1 << 20)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace plumbline::bench
