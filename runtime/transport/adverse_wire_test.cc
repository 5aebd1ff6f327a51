// An adverse wire changes nothing for a program that keeps to the contract of transport.h, and shows each way of not
// keeping to it. The oracle is the sent content.
#include "runtime/transport/adverse_wire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "runtime/error.h"
#include "runtime/testing/refusal.h"
#include "runtime/testing/spawn.h"
#include "runtime/transport/collectives.h"
#include "runtime/transport/forwarding_transport.h"

namespace plumbline::transport {
namespace {

using testing::with_ranks;

constexpr Wire kAll = {.slow = true, .poison = true, .shuffle = true};

Deadline adverse_limit() { return Deadline::after(std::chrono::seconds(20)); }

std::vector<uint8_t> filled(size_t bytes, int value) {
  return std::vector<uint8_t>(bytes, static_cast<uint8_t>(value));
}

TEST(AdverseWire, ACorrectProgramGetsEveryMessage) {
  for (const uint64_t seed : {1u, 2u, 3u})
    with_ranks(4, [&](Transport& inner) {
      const std::unique_ptr<Transport> wire = adverse_wire(inner, kAll, seed);
      constexpr int kMessages = 12;
      std::vector<std::vector<uint8_t>> sent, received;
      std::vector<Request> requests;
      for (int peer = 0; peer < wire->size(); ++peer)
        for (int m = 0; m < kMessages; ++m) {
          const size_t bytes = static_cast<size_t>(m) * 700;  // also none
          received.push_back(filled(bytes, 0));
          requests.push_back(wire->irecv(received.back().data(), bytes, peer, m / 2));
          sent.push_back(filled(bytes, wire->rank() * 50 + m));
          requests.push_back(wire->isend(sent.back().data(), bytes, peer, m / 2));
        }
      for (Request& request : requests) wire->wait(request, adverse_limit(), "the test");
      for (int peer = 0; peer < wire->size(); ++peer)
        for (int m = 0; m < kMessages; ++m)
          EXPECT_EQ(received[static_cast<size_t>(peer * kMessages + m)],
                    filled(static_cast<size_t>(m) * 700, peer * 50 + m))
              << "seed " << seed << ", rank " << wire->rank() << " from " << peer << ", message " << m;
      barrier(*wire, adverse_limit());
    });
}

TEST(AdverseWire, SlowReadsMemoryThatIsChangedTooEarly) {
  with_ranks(2, [](Transport& inner) {
    const std::unique_ptr<Transport> wire = adverse_wire(inner, {.slow = true}, 5);
    constexpr int kTries = 20;
    int changed = 0;
    for (int i = 0; i < kTries; ++i) {
      std::vector<uint8_t> data = filled(64, 1);
      if (wire->rank() == 0) {
        Request send = wire->isend(data.data(), data.size(), 1, 0);
        std::ranges::fill(data, uint8_t{2});  // before the wait: not allowed
        wire->wait(send, adverse_limit(), "the send");
      } else {
        Request receive = wire->irecv(data.data(), data.size(), 0, 0);
        wire->wait(receive, adverse_limit(), "the receive");
        changed += data == filled(64, 2);
      }
    }
    if (wire->rank() == 1) {
      EXPECT_GE(changed, kTries - 2);
    }
    barrier(inner, adverse_limit());
  });
}

TEST(AdverseWire, PoisonIsReadBeforeTheWait) {
  with_ranks(2, [](Transport& inner) {
    const std::unique_ptr<Transport> wire = adverse_wire(inner, {.poison = true}, 5);
    std::vector<uint8_t> data = filled(64, 1);
    if (wire->rank() == 0) {
      Request send = wire->isend(data.data(), data.size(), 1, 0);
      wire->wait(send, adverse_limit(), "the send");
      barrier(inner, adverse_limit());
    } else {
      Request receive = wire->irecv(data.data(), data.size(), 0, 0);
      barrier(inner, adverse_limit());  // the message has been sent
      EXPECT_EQ(data, filled(64, 0xff));
      wire->wait(receive, adverse_limit(), "the receive");
      EXPECT_EQ(data, filled(64, 1));
    }
  });
}

TEST(AdverseWire, ShuffleChangesTheOrderBetweenPairsOnly) {
  with_ranks(3, [](Transport& inner) {
    const std::unique_ptr<Transport> wire = adverse_wire(inner, {.shuffle = true}, 5);
    // Rank 0 sends to 1, then to 2; who has its message first tells the other. In order, 2 would never be first.
    constexpr int kTries = 40;
    int overtaken = 0;
    for (int i = 0; i < kTries; ++i) {
      uint8_t one = 1, two = 2, got = 0;
      if (wire->rank() == 0) {
        Request first = wire->isend(&one, 1, 1, 0), second = wire->isend(&two, 1, 2, 0);
        // Looks until one of them is under way.
        bool first_done = false, second_done = false;
        while (!first_done && !second_done) {
          first_done = wire->test(first);
          second_done = !first_done && wire->test(second);
        }
        overtaken += second_done;
        wire->wait(first, adverse_limit(), "the first send");
        wire->wait(second, adverse_limit(), "the second send");
      } else {
        Request receive = wire->irecv(&got, 1, 0, 0);
        wire->wait(receive, adverse_limit(), "the receive");
        EXPECT_EQ(got, wire->rank());
      }
      barrier(inner, adverse_limit());
    }
    if (wire->rank() == 0) {
      EXPECT_GT(overtaken, 0);
      EXPECT_LT(overtaken, kTries);
    }
  });
}

/// A medium that fails at the first receive.
class Broken : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;
  Request isend(const void*, size_t, int, int64_t) override { return ++sends, Request(); }
  Request irecv(void*, size_t, int, int64_t) override { throw Error("the medium failed"); }

  int sends = 0;
};

TEST(AdverseWire, AfterAnErrorNoSendBeginsThatWasWaiting) {
  with_ranks(1, [](Transport& inner) {
    Broken broken(inner);
    const std::unique_ptr<Transport> wire = adverse_wire(broken, {.slow = true}, 3);
    std::vector<uint8_t> data = filled(8, 1);
    for (int i = 0; i < 20; ++i) wire->isend(data.data(), data.size(), 0, i);
    EXPECT_EQ(testing::failure<Error>([&] { wire->irecv(data.data(), data.size(), 0, 99); }), "the medium failed");
    const int begun = broken.sends;
    std::this_thread::sleep_for(std::chrono::milliseconds(3));  // all are due
    wire->isend(data.data(), data.size(), 0, 20);
    EXPECT_EQ(broken.sends, begun);
  });
}

TEST(AdverseWire, WordsAreReadAndOthersRefused) {
  EXPECT_FALSE(parse_wire("").adverse());
  const Wire two = parse_wire("shuffle,slow");
  EXPECT_TRUE(two.slow && two.shuffle && !two.poison);
  for (const char* text : {"fast", "slow,", ",slow", "slow poison", "slow,,poison"})
    EXPECT_NE(testing::refusal([&] { parse_wire(text); }).find("expected slow, poison, shuffle"), std::string::npos)
        << text;
}

}  // namespace
}  // namespace plumbline::transport
