// The contract of every transport; runs over threads and over MPI processes. The oracle is the sent content: the
// receiver computes it from the message's number.
#include "runtime/transport/transport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/error.h"
#include "runtime/testing/refusal.h"
#include "runtime/testing/spawn.h"

namespace plumbline::transport {
namespace {

using testing::failure;
using testing::with_ranks;

Deadline test_limit() { return Deadline::after(std::chrono::seconds(20)); }

std::vector<uint8_t> contents(size_t bytes, uint32_t number) {
  std::vector<uint8_t> data(bytes);
  uint32_t state = number * 2654435761u + 12345u;
  for (uint8_t& byte : data) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return data;
}

void send(Transport& transport, const std::vector<uint8_t>& data, int peer, int64_t tag) {
  Request request = transport.isend(data.data(), data.size(), peer, tag);
  transport.wait(request, test_limit(), "a send of the test");
  EXPECT_TRUE(request.empty());
}

std::vector<uint8_t> receive(Transport& transport, size_t bytes, int peer, int64_t tag) {
  std::vector<uint8_t> data(bytes, 0xee);
  Request request = transport.irecv(data.data(), bytes, peer, tag);
  transport.wait(request, test_limit(), "a receive of the test");
  EXPECT_TRUE(request.empty());
  return data;
}

TEST(Transport, PingPongKeepsContents) {
  with_ranks(2, [](Transport& transport) {
    for (size_t bytes : {0ul, 1ul, 7ul, 4096ul, 65536ul, 65537ul, 8ul << 20}) {
      for (int64_t tag : {int64_t{0}, int64_t{3}, transport.max_tag()}) {
        if (transport.rank() == 0) {
          send(transport, contents(bytes, 1), 1, tag);
          EXPECT_TRUE(receive(transport, bytes, 1, tag) == contents(bytes, 2)) << bytes << " bytes, tag " << tag;
        } else {
          EXPECT_TRUE(receive(transport, bytes, 0, tag) == contents(bytes, 1)) << bytes << " bytes, tag " << tag;
          send(transport, contents(bytes, 2), 0, tag);
        }
      }
    }
  });
}

TEST(Transport, TagsMayBeReceivedInAnyOrder) {
  with_ranks(2, [](Transport& transport) {
    constexpr int kMessages = 20;
    if (transport.rank() == 0) {
      std::vector<std::vector<uint8_t>> data;
      std::vector<Request> requests;
      for (int tag = 0; tag < kMessages; ++tag) data.push_back(contents(100 + tag, tag));
      for (int tag = 0; tag < kMessages; ++tag) {
        requests.push_back(transport.isend(data[tag].data(), data[tag].size(), 1, tag));
      }
      for (Request& request : requests) transport.wait(request, test_limit(), "out of order");
    } else {
      for (int tag = kMessages - 1; tag >= 0; --tag) {
        EXPECT_EQ(receive(transport, 100 + tag, 0, tag), contents(100 + tag, tag)) << "tag " << tag;
      }
    }
  });
}

TEST(Transport, MessagesOfOneTagKeepTheirOrder) {
  with_ranks(2, [](Transport& transport) {
    constexpr int kMessages = 1000;
    std::vector<std::vector<uint8_t>> outgoing, incoming(kMessages, std::vector<uint8_t>(16));
    std::vector<Request> requests;
    const int peer = 1 - transport.rank();
    for (int i = 0; i < kMessages; ++i) outgoing.push_back(contents(16, 7 * i + transport.rank()));
    // Both directions at once: receives before sends on one rank, after them on the other.
    const auto post_sends = [&] {
      for (auto& data : outgoing) requests.push_back(transport.isend(data.data(), data.size(), peer, 5));
    };
    if (transport.rank() == 0) post_sends();
    for (auto& data : incoming) requests.push_back(transport.irecv(data.data(), data.size(), peer, 5));
    if (transport.rank() == 1) post_sends();
    for (Request& request : requests) transport.wait(request, test_limit(), "many outstanding");
    for (int i = 0; i < kMessages; ++i) ASSERT_EQ(incoming[i], contents(16, 7 * i + peer)) << "message " << i;
  });
}

TEST(Transport, TestCompletesWithoutWait) {
  with_ranks(2, [](Transport& transport) {
    if (transport.rank() == 1) return send(transport, contents(64, 3), 0, 1);
    std::vector<uint8_t> data(64);
    Request request = transport.irecv(data.data(), data.size(), 1, 1);
    const Deadline deadline = test_limit();
    while (!transport.test(request)) ASSERT_FALSE(deadline.passed());
    EXPECT_TRUE(request.empty());
    EXPECT_TRUE(transport.test(request));  // an empty request is a complete one
    EXPECT_EQ(data, contents(64, 3));
  });
}

TEST(Transport, AMessageWithoutAReceiveIsThereAndStays) {
  with_ranks(2, [](Transport& transport) {
    const std::vector<uint8_t> small = contents(64, 1), large = contents(1 << 20, 2);
    if (transport.rank() == 0) {
      std::vector<Request> requests = {transport.isend(small.data(), small.size(), 1, 3),
                                       transport.isend(large.data(), large.size(), 1, 4)};
      send(transport, contents(1, 3), 1, 9);
      for (Request& request : requests) transport.wait(request, test_limit(), "sent before");
      return;
    }
    receive(transport, 1, 0, 9);  // does not overtake the others
    for (int round = 0; round < 2; ++round) {
      EXPECT_TRUE(transport.has_message(0, 3));
      EXPECT_TRUE(transport.has_message(0, 4));
      EXPECT_FALSE(transport.has_message(0, 5));
      EXPECT_FALSE(transport.has_message(1, 3));
    }
    EXPECT_TRUE(receive(transport, small.size(), 0, 3) == small);
    EXPECT_TRUE(receive(transport, large.size(), 0, 4) == large);
    EXPECT_FALSE(transport.has_message(0, 3));
    EXPECT_FALSE(transport.has_message(0, 4));
  });
}

TEST(Transport, ARankMaySendToItself) {
  with_ranks(2, [](Transport& transport) {
    for (size_t bytes : {0ul, 100ul, 1ul << 20}) {
      const std::vector<uint8_t> data = contents(bytes, transport.rank());
      std::vector<uint8_t> received(bytes);
      Request out = transport.isend(data.data(), bytes, transport.rank(), 2);
      Request in = transport.irecv(received.data(), bytes, transport.rank(), 2);
      transport.wait(in, test_limit(), "own message");
      transport.wait(out, test_limit(), "own message");
      EXPECT_TRUE(received == data);
    }
  });
}

void expect_wrong_size(size_t sent, size_t expected, bool receive_first) {
  with_ranks(2, [&](Transport& transport) {
    if (transport.rank() == 0) {
      if (receive_first) receive(transport, 0, 1, 8);
      send(transport, contents(sent, 1), 1, 9);
      return;
    }
    std::vector<uint8_t> data(expected, 0xee);
    Request early;
    if (receive_first) {
      early = transport.irecv(data.data(), expected, 0, 9);
      send(transport, {}, 0, 8);
    }
    const std::string text = failure<Error>([&] {
      Request request = receive_first ? early : transport.irecv(data.data(), expected, 0, 9);
      transport.wait(request, test_limit(), "wrong size");
    });
    EXPECT_EQ(text, "rank 1: message from rank 0 with tag 9 has " + std::to_string(sent) + " bytes, expected " +
                        std::to_string(expected));
  });
}

TEST(Transport, AMessageOfAnotherSizeIsAnError) {
  for (bool receive_first : {false, true}) {
    for (auto [sent, expected] :
         std::vector<std::pair<size_t, size_t>>{{16, 8}, {8, 16}, {0, 4}, {4, 0}, {300000, 8}}) {
      SCOPED_TRACE(::testing::Message() << sent << " sent, " << expected << " expected, receive first "
                                        << receive_first);
      expect_wrong_size(sent, expected, receive_first);
    }
  }
}

TEST(Transport, ATimeoutNamesPeerLimitAndContext) {
  with_ranks(2, [](Transport& transport) {
    if (transport.rank() == 0) return;
    uint8_t byte = 0;
    const int microbatch = 3;
    const std::string text = failure<TimeoutError>([&] {
      Request request = transport.irecv(&byte, 1, 0, 1);
      transport.wait(request, Deadline::after(std::chrono::milliseconds(50)),
                     [&] { return "stage 2 waits for micro-batch " + std::to_string(microbatch); });
    });
    EXPECT_EQ(text, "rank 1: no message from rank 0 within 0.05 s: stage 2 waits for micro-batch 3");
  });
}

TEST(Transport, WithdrawnReceivesLeaveTheirMemoryAlone) {
  with_ranks(2, [](Transport& transport) {
    if (transport.rank() == 0) {
      receive(transport, 0, 1, 1);
      send(transport, contents(32, 4), 1, 2);
      return;
    }
    std::vector<uint8_t> forgotten(32, 0xee);
    Request request = transport.irecv(forgotten.data(), 32, 0, 2);
    transport.withdraw();
    send(transport, {}, 0, 1);
    EXPECT_EQ(receive(transport, 32, 0, 2), contents(32, 4));
    EXPECT_EQ(forgotten, std::vector<uint8_t>(32, 0xee));
    EXPECT_NE(failure<Error>([&] { transport.wait(request, test_limit(), "withdrawn"); }).find("not outstanding"),
              std::string::npos);
  });
}

TEST(Transport, ATimeoutWithdrawsTheOtherOperationsOfTheRank) {
  with_ranks(2, [](Transport& transport) {
    if (transport.rank() == 0) {
      receive(transport, 0, 1, 1);
      send(transport, contents(32, 5), 1, 2);
      return;
    }
    std::vector<uint8_t> other(32, 0xee), never(1);
    (void)transport.irecv(other.data(), 32, 0, 2);
    Request request = transport.irecv(never.data(), 1, 0, 3);
    EXPECT_THROW(transport.wait(request, Deadline::after(std::chrono::milliseconds(1)), "never"), TimeoutError);
    send(transport, {}, 0, 1);
    EXPECT_EQ(receive(transport, 32, 0, 2), contents(32, 5));
    EXPECT_EQ(other, std::vector<uint8_t>(32, 0xee));
  });
}

TEST(Transport, RefusesPeersAndTagsOutOfRange) {
  with_ranks(2, [](Transport& transport) {
    uint8_t byte = 0;
    const std::string me = "rank " + std::to_string(transport.rank()) + ": ";
    EXPECT_EQ(failure<Error>([&] { transport.isend(&byte, 1, 2, 0); }), me + "cannot send to rank 2: ranks are 0 to 1");
    EXPECT_EQ(failure<Error>([&] { transport.irecv(&byte, 1, -1, 0); }),
              me + "cannot receive from rank -1: ranks are 0 to 1");
    EXPECT_EQ(failure<Error>([&] { transport.irecv(&byte, 1, 0, -kReservedTags - 1); }),
              me + "cannot receive from rank 0 with tag -17: tags are 0 to " + std::to_string(transport.max_tag()));
    if (transport.max_tag() < std::numeric_limits<int64_t>::max()) {
      EXPECT_THROW(transport.isend(&byte, 1, 0, transport.max_tag() + 1), Error);
    }
    EXPECT_GE(transport.max_tag(), 32767 - kReservedTags);
  });
}

struct Message {
  int source, destination;
  int64_t tag;
  size_t bytes;
  uint32_t number;
};

/// The same on every rank: made from the seed alone.
std::vector<Message> random_messages(int ranks, uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t bound) { return static_cast<int>(random() % bound); };
  std::vector<Message> messages;
  for (uint32_t number = 0; number < 400; ++number) {
    const size_t bytes = below(10) == 0 ? below(200000) : below(300);
    messages.push_back({below(ranks), below(ranks), below(6), bytes, number});
  }
  return messages;
}

void run_random_traffic(Transport& transport, uint32_t seed) {
  const std::vector<Message> messages = random_messages(transport.size(), seed);
  std::mt19937 random(seed * 31 + transport.rank());
  struct Operation {
    const Message* message;
    bool is_send;
    std::vector<uint8_t> data;
    Request request;
  };
  // Each rank posts in a different order, but messages of one (source, destination, tag) in sequence.
  std::vector<Operation> operations;
  std::map<std::tuple<int, int, int64_t, bool>, std::vector<const Message*>> queues;
  for (const Message& message : messages) {
    for (bool is_send : {true, false}) {
      if ((is_send ? message.source : message.destination) != transport.rank()) continue;
      queues[{message.source, message.destination, message.tag, is_send}].push_back(&message);
      operations.push_back({&message, is_send, {}, {}});
    }
  }
  std::shuffle(operations.begin(), operations.end(), random);
  for (Operation& operation : operations) {
    const Message* drawn = operation.message;
    auto& queue = queues[{drawn->source, drawn->destination, drawn->tag, operation.is_send}];
    const Message& message = *queue.front();
    queue.erase(queue.begin());
    operation.message = &message;
    if (operation.is_send) {
      operation.data = contents(message.bytes, message.number);
      operation.request = transport.isend(operation.data.data(), message.bytes, message.destination, message.tag);
    } else {
      operation.data.resize(message.bytes);
      operation.request = transport.irecv(operation.data.data(), message.bytes, message.source, message.tag);
    }
  }
  std::shuffle(operations.begin(), operations.end(), random);
  for (Operation& operation : operations) {
    if (random() % 2 == 0 && transport.test(operation.request)) continue;
    transport.wait(operation.request, test_limit(), "random traffic");
  }
  for (const Operation& operation : operations) {
    if (operation.is_send) continue;
    const Message& message = *operation.message;
    EXPECT_TRUE(operation.data == contents(message.bytes, message.number))
        << "message " << message.number << " from rank " << message.source << ", tag " << message.tag;
  }
}

void random_traffic_over(int ranks) {
  with_ranks(ranks, [](Transport& transport) {
    for (uint32_t seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      run_random_traffic(transport, seed);
    }
  });
}

TEST(Transport, RandomTrafficOver1Rank) { random_traffic_over(1); }
TEST(Transport, RandomTrafficOver2Ranks) { random_traffic_over(2); }
TEST(Transport, RandomTrafficOver4Ranks) { random_traffic_over(4); }
TEST(Transport, RandomTrafficOver8Ranks) { random_traffic_over(8); }

}  // namespace
}  // namespace plumbline::transport
