// The transport over the stub, in each of its modes, with ranks as threads and as MPI processes. The oracle is the sent
// content, which the receiver computes from the message's number.
#include "runtime/transport/nccl/nccl_transport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/error.h"
#include "runtime/testing/refusal.h"
#include "runtime/testing/spawn.h"
#include "runtime/transport/collectives.h"

namespace plumbline::transport::nccl {
namespace {

using plumbline::testing::expect_part;
using plumbline::testing::failure;
using plumbline::testing::with_ranks;
using Bytes = std::vector<uint8_t>;

Deadline test_limit() { return Deadline::after(std::chrono::seconds(30)); }

Bytes contents(size_t bytes, uint32_t number) {
  Bytes data(bytes);
  uint32_t state = number * 2654435761u + 12345u;
  for (uint8_t& byte : data) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return data;
}

using NcclBody = std::function<void(Transport& transport)>;

/// Runs the body on ranks whose transport is NCCL's over that of with_ranks().
void with_nccl_ranks(const std::string& choice, int ranks, const NcclBody& body) {
  const LibraryChoice parsed = parse_library_choice(choice);
  with_ranks(ranks, [&](Transport& control) {
    const auto transport = make_nccl_transport(load_library(parsed), control,
                                               {.timeout = std::chrono::seconds(30), .headers = parsed.headers});
    body(*transport);
    barrier(control, test_limit());
  });
}

struct Message {
  int source, destination;
  int64_t tag;
  size_t bytes;
  uint32_t number;
};

/// The same on every rank: made from the seed alone. Each sender's are in the order in which it will post them.
std::vector<Message> random_messages(int ranks, int count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Message> messages;
  std::map<std::pair<int, int>, int64_t> tags;
  for (uint32_t number = 0; number < static_cast<uint32_t>(count); ++number) {
    const int source = static_cast<int>(random() % ranks);
    const int destination = static_cast<int>((source + 1 + random() % (ranks - 1)) % ranks);
    const size_t bytes = random() % 8 == 0 ? random() % 90000 : random() % 200;
    messages.push_back({source, destination, 7 * tags[{source, destination}]++, bytes, number});
  }
  // Tags must not be in the order of sending.
  std::ranges::shuffle(messages, random);
  return messages;
}

Traffic traffic_of(const std::vector<Message>& messages, int rank) {
  Traffic traffic;
  for (const Message& message : messages) {
    if (message.source == rank) traffic.sends.push_back({message.destination, message.tag, message.bytes});
    if (message.destination == rank) traffic.receives.push_back({message.source, message.tag, message.bytes});
  }
  return traffic;
}

/// One step: sends in their order between receives in any, then waits in any order.
void run_step(Transport& transport, const std::vector<Message>& messages, uint32_t seed, uint32_t step) {
  std::mt19937 random(seed * 31 + static_cast<uint32_t>(transport.rank()) + 1000 * step);
  struct Posted {
    const Message* message;
    bool is_send;
    Bytes data;
    Request request;
  };
  std::vector<Posted> posted;
  std::vector<const Message*> sends, receives;
  for (const Message& message : messages) {
    if (message.source == transport.rank()) sends.push_back(&message);
    if (message.destination == transport.rank()) receives.push_back(&message);
  }
  std::ranges::shuffle(receives, random);
  std::vector<char> order(sends.size(), 1);
  order.resize(sends.size() + receives.size(), 0);
  std::ranges::shuffle(order, random);
  size_t sent = 0, received = 0;
  posted.reserve(order.size());
  for (const char is_send : order) {
    const Message& message = is_send ? *sends[sent++] : *receives[received++];
    Posted& one = posted.emplace_back(&message, is_send != 0);
    one.data = is_send ? contents(message.bytes, message.number + step) : Bytes(message.bytes, 0xee);
    one.request = is_send ? transport.isend(one.data.data(), message.bytes, message.destination, message.tag)
                          : transport.irecv(one.data.data(), message.bytes, message.source, message.tag);
  }
  std::ranges::shuffle(posted, random);
  for (Posted& one : posted) {
    if (random() % 2 == 0 && transport.test(one.request)) continue;
    transport.wait(one.request, test_limit(), "a message of the test");
    if (one.is_send) std::ranges::fill(one.data, 0xaa);  // the memory is ours again
  }
  for (const Posted& one : posted) {
    if (one.is_send) continue;
    EXPECT_TRUE(one.data == contents(one.message->bytes, one.message->number + step))
        << "seed " << seed << ", step " << step << ", message " << one.message->number << " from rank "
        << one.message->source << " to rank " << transport.rank();
  }
}

void random_traffic(const std::string& choice, int ranks) {
  // Ranks that wait in another order than they receive wait long for a receive that is not asked for.
  const uint32_t seeds = choice.find("late") == std::string::npos ? 3 : 1;
  with_nccl_ranks(choice, ranks, [&](Transport& transport) {
    for (uint32_t seed = 1; seed <= seeds; ++seed) {
      const std::vector<Message> messages = random_messages(ranks, 12 * ranks, seed);
      const auto traffic = transport.agree_on_traffic(traffic_of(messages, transport.rank()), test_limit());
      ASSERT_NE(traffic, nullptr);
      for (uint32_t step = 0; step < 2; ++step) {
        transport.begin_traffic(traffic.get());
        run_step(transport, messages, seed, step);
        transport.begin_traffic(nullptr);
      }
    }
  });
}

class NcclTransport : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Modes, NcclTransport,
                         ::testing::Values("stub", "stub:rendezvous", "stub:late", "stub:poison", "stub:shuffle",
                                           "stub:apart,poison", "stub:late,poison,shuffle",
                                           "stub:late,poison,apart,headers"));

TEST_P(NcclTransport, RandomTrafficOver2Ranks) { random_traffic(GetParam(), 2); }
TEST_P(NcclTransport, RandomTrafficOver4Ranks) { random_traffic(GetParam(), 4); }
TEST_P(NcclTransport, RandomTrafficOver8Ranks) { random_traffic(GetParam(), 8); }

/// One step of messages with tags 10, 11, ... from rank 0 to rank 1, then tag 5 back.
std::unique_ptr<AgreedTraffic> agree(Transport& transport, const std::vector<size_t>& sizes) {
  std::vector<Parcel> there;
  for (size_t i = 0; i < sizes.size(); ++i)
    there.push_back({1 - transport.rank(), 10 + static_cast<int64_t>(i), sizes[i]});
  const std::vector<Parcel> back = {{1 - transport.rank(), 5, 4}};
  const bool first = transport.rank() == 0;
  auto traffic = transport.agree_on_traffic({first ? there : back, first ? back : there}, test_limit());
  transport.begin_traffic(traffic.get());
  return traffic;
}

void send(Transport& transport, const Bytes& data, int peer, int64_t tag) {
  Request request = transport.isend(data.data(), data.size(), peer, tag);
  transport.wait(request, test_limit(), "a send of the test");
}

Bytes receive(Transport& transport, size_t bytes, int peer, int64_t tag) {
  Bytes data(bytes, 0xee);
  Request request = transport.irecv(data.data(), bytes, peer, tag);
  transport.wait(request, test_limit(), "a receive of the test");
  return data;
}

TEST_P(NcclTransport, AReceiveMayWaitForAMessageBehindOthers) {
  with_nccl_ranks(GetParam(), 2, [](Transport& transport) {
    const std::vector<size_t> sizes = {100, 0, 70000, 8};
    const auto traffic = agree(transport, sizes);
    if (transport.rank() == 0) {
      std::vector<Bytes> data;
      std::vector<Request> requests;
      for (size_t i = 0; i < sizes.size(); ++i) data.push_back(contents(sizes[i], static_cast<uint32_t>(i)));
      for (size_t i = 0; i < sizes.size(); ++i)
        requests.push_back(transport.isend(data[i].data(), sizes[i], 1, 10 + static_cast<int64_t>(i)));
      EXPECT_EQ(receive(transport, 4, 1, 5), contents(4, 99));
      for (Request& request : requests) transport.wait(request, test_limit(), "sends");
    } else {
      EXPECT_EQ(receive(transport, 8, 0, 13), contents(8, 3));  // without a receive for those before it
      send(transport, contents(4, 99), 0, 5);
      EXPECT_EQ(receive(transport, 100, 0, 10), contents(100, 0));
      EXPECT_EQ(receive(transport, 70000, 0, 12), contents(70000, 2));
      EXPECT_EQ(receive(transport, 0, 0, 11), Bytes());
    }
  });
}

TEST_P(NcclTransport, OtherMessagesGoOverTheControlTransport) {
  with_nccl_ranks(GetParam(), 2, [](Transport& transport) {
    const int peer = 1 - transport.rank();
    const auto exchange = [&](int64_t tag) {
      const Bytes data = contents(300, static_cast<uint32_t>(tag));
      Request out = transport.isend(data.data(), 300, peer, tag);
      EXPECT_EQ(receive(transport, 300, peer, tag), data);
      transport.wait(out, test_limit(), "control");
    };
    exchange(10);  // before a step: the tag of a step's message
    const auto traffic = agree(transport, {8});
    exchange(3);
    barrier(transport, test_limit());
    const Bytes own = contents(64, 7);
    Request to_self = transport.isend(own.data(), 64, transport.rank(), 10);
    EXPECT_EQ(receive(transport, 64, transport.rank(), 10), own);
    transport.wait(to_self, test_limit(), "own message");
    if (transport.rank() == 0) send(transport, contents(8, 1), 1, 10);
    if (transport.rank() == 1) {
      EXPECT_EQ(receive(transport, 8, 0, 10), contents(8, 1));
    }
    if (transport.rank() == 1) send(transport, contents(4, 2), 0, 5);
    if (transport.rank() == 0) {
      EXPECT_EQ(receive(transport, 4, 1, 5), contents(4, 2));
    }
    transport.begin_traffic(nullptr);
    exchange(10);
  });
}

TEST_P(NcclTransport, AWaitProgressesTheControlTransport) {
  with_nccl_ranks(GetParam(), 2, [](Transport& transport) {
    const auto traffic = agree(transport, {8});
    const size_t large = 4 << 20;
    if (transport.rank() == 0) {
      send(transport, contents(large, 1), 1, 3);  // ends when rank 1 has taken it, which waits for the next message
      send(transport, contents(8, 2), 1, 10);
    } else {
      Bytes data(large);
      Request control = transport.irecv(data.data(), large, 0, 3);
      EXPECT_EQ(receive(transport, 8, 0, 10), contents(8, 2));
      transport.wait(control, test_limit(), "control");
      EXPECT_TRUE(data == contents(large, 1));
    }
  });
}

TEST(NcclTransportMemory, PinnedMemoryIsNotFreedBetweenSteps) {
  // CUDA may wait in it for NCCL's kernels.
  with_ranks(2, [](Transport& control) {
    Library library = load_library(parse_library_choice("stub:apart"));
    int freed = 0;
    library.free_host = [&, inner = library.free_host](void* memory) {
      ++freed;
      return inner(memory);
    };
    const auto transport = make_nccl_transport(library, control);
    int freed_by_start = 0;
    for (const size_t bytes : {16, 4000, 100000}) {
      const auto traffic = agree(*transport, {bytes});
      if (bytes == 16) freed_by_start = freed;  // of the first bytes on both edges
      const bool first = transport->rank() == 0;
      if (first) {
        send(*transport, contents(bytes, 1), 1, 10);
        EXPECT_EQ(receive(*transport, 4, 1, 5), contents(4, 2));
      } else {
        EXPECT_EQ(receive(*transport, bytes, 0, 10), contents(bytes, 1));
        send(*transport, contents(4, 2), 0, 5);
      }
      transport->begin_traffic(nullptr);
    }
    EXPECT_EQ(freed, freed_by_start);
    barrier(control, test_limit());
  });
}

TEST(NcclTransportErrors, ATimeoutNamesBothEndsAndEndsTheEdges) {
  with_nccl_ranks("stub:rendezvous", 2, [](Transport& transport) {
    const auto traffic = agree(transport, {16});
    if (transport.rank() == 1) {
      Bytes data(16);
      Request request = transport.irecv(data.data(), 16, 0, 10);
      const std::string text = failure<TimeoutError>([&] {
        transport.wait(request, Deadline::after(std::chrono::milliseconds(50)), "stage 2 waits for micro-batch 3");
      });
      EXPECT_TRUE(text.starts_with("rank 1: no message from rank 0 within 0.05 s: stage 2 waits for micro-batch 3 ("))
          << text;
      expect_part(text, "rank 0 has posted no further send; receive 1 of rank 1 from rank 0, 16 bytes, stream ");
      EXPECT_THROW(transport.wait(request, test_limit(), "stale"), Error);
      expect_part(failure<Error>([&] { (void)agree(transport, {16}); }), "aborted after an error");
    }
    transport.withdraw();  // rank 0 has not sent, and does not any more
    // The control transport goes on.
    const int peer = 1 - transport.rank();
    const Bytes data = contents(8, 1);
    Request out = transport.isend(data.data(), 8, peer, 10);
    EXPECT_EQ(receive(transport, 8, peer, 10), data);
    transport.wait(out, test_limit(), "control");
  });
}

TEST(NcclTransportErrors, TheLimitOfAMessageIsNotThatOfTheStart) {
  with_ranks(2, [](Transport& control) {
    Library library = load_library(parse_library_choice("stub"));
    library.comm_init_rank_config = [inner = library.comm_init_rank_config](Communicator* c, int n, UniqueId id, int r,
                                                                            Config* config) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      return inner(c, n, id, r, config);
    };
    // One rank comes late, as one that loads CUDA, and both communicators together take longer than the limit as well.
    const auto limit = std::chrono::milliseconds(1500);
    if (control.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(2));
    const auto transport = make_nccl_transport(library, control, {.timeout = limit});
    const Parcel parcel{1 - transport->rank(), 3, 8};
    EXPECT_NE(transport->agree_on_traffic({{parcel}, {parcel}}, Deadline::after(limit)), nullptr);
    barrier(control, test_limit());
  });
}

TEST(NcclTransportErrors, NcclsLastWarningIsToldOfACallThatFailedAlone) {
  with_ranks(2, [](Transport& control) {
    Library library = load_library(parse_library_choice("stub:rendezvous"));
    library.stub.clear();  // as NCCL itself, whose last warning nothing clears
    library.get_last_error = [](Communicator) { return "an old warning"; };
    bool fails = false;
    library.send = [&, inner = library.send](const void* d, size_t n, DataType t, int p, Communicator c, Stream s) {
      return fails ? Result::SystemError : inner(d, n, t, p, c, s);
    };
    const auto transport = make_nccl_transport(library, control);
    const auto traffic = agree(*transport, {16});
    fails = true;
    Bytes data(16);
    if (transport->rank() == 1) {
      Request request = transport->irecv(data.data(), 16, 0, 10);
      EXPECT_EQ(failure<TimeoutError>([&] {
                  transport->wait(request, Deadline::after(std::chrono::milliseconds(50)), "a receive of the test");
                }),
                "rank 1: no message from rank 0 within 0.05 s: a receive of the test");
    } else {
      EXPECT_EQ(failure<Error>([&] { (void)transport->isend(data.data(), 16, 1, 10); }),
                "rank 0: NCCL, edge from rank 0 to rank 1: ncclSend: system error (stub of NCCL) (NCCL's last warning "
                "in this process: an old warning)");
    }
    barrier(control, test_limit());
  });
}

TEST(NcclTransportErrors, ACopyToADeviceThatDoesNotEndIsNamed) {
  with_ranks(2, [](Transport& control) {
    Library library = load_library(parse_library_choice("stub"));
    bool copies = false;
    Event copied = nullptr;  // the event behind the copy, which seems never to pass
    const auto query = library.event_query;
    library.memcpy_async = [&, inner = library.memcpy_async](void* to, const void* from, size_t bytes,
                                                             cuda::CopyKind kind, Stream stream) {
      copies = true;
      return inner(to, from, bytes, kind, stream);
    };
    library.event_record = [&, inner = library.event_record](Event event, Stream stream) {
      if (copies) copied = event;
      return inner(event, stream);
    };
    library.event_query = [&](Event event) { return event == copied ? CudaError::NotReady : query(event); };
    const auto transport = make_nccl_transport(library, control, {.timeout = std::chrono::seconds(3)});
    const auto traffic = agree(*transport, {16, 8});
    if (transport->rank() == 0) {
      const Bytes first = contents(16, 1), second = contents(8, 2);
      Request one = transport->isend(first.data(), 16, 1, 10), two = transport->isend(second.data(), 8, 1, 11);
      transport->wait(one, test_limit(), "a send of the test");
      transport->wait(two, test_limit(), "a send of the test");
    } else {
      EXPECT_EQ(receive(*transport, 8, 0, 11), contents(8, 2));  // the message before it is staged
      Bytes data(16);
      Request request = transport->irecv(data.data(), 16, 0, 10);
      EXPECT_EQ(failure<TimeoutError>([&] { transport->wait(request, test_limit(), "a receive of the test"); }),
                "rank 1: the message from rank 0 with tag 10 has arrived, but its copy to the device is still in "
                "progress");
      while (query(copied) == CudaError::NotReady) std::this_thread::yield();  // the copy writes to `data` until then
    }
    barrier(control, test_limit());
    transport->withdraw();
    barrier(control, test_limit());
  });
}

TEST(NcclTransportErrors, WithdrawnReceivesLeaveTheirMemoryAlone) {
  with_nccl_ranks("stub:late", 2, [](Transport& transport) {
    const auto traffic = agree(transport, {16});
    Bytes data = contents(16, 1), forgotten(16, 0xee);
    if (transport.rank() == 1) {
      (void)transport.irecv(forgotten.data(), 16, 0, 10);
      transport.withdraw();
    }
    barrier(transport, test_limit());
    if (transport.rank() == 0) {
      (void)transport.isend(data.data(), 16, 1, 10);
      transport.withdraw();
    }
    barrier(transport, test_limit());
    EXPECT_EQ(forgotten, Bytes(16, 0xee));
  });
}

TEST(NcclTransportErrors, SendsMustKeepTheAgreedOrderAndSizes) {
  with_nccl_ranks("stub", 2, [](Transport& transport) {
    const auto traffic = agree(transport, {16, 8});
    const Bytes data(16);
    if (transport.rank() == 0) {
      EXPECT_EQ(
          failure<Error>([&] { transport.isend(data.data(), 8, 1, 11); }),
          "rank 0: the message to rank 1 with tag 11 is message 1 of the agreed order, but 0 were posted before it");
      EXPECT_EQ(failure<Error>([&] { transport.isend(data.data(), 12, 1, 10); }),
                "rank 0: the message to rank 1 with tag 10 has 12 bytes, but 16 were agreed");
    }
    transport.withdraw();
  });
}

TEST(NcclTransportErrors, RanksThatExpectOtherMessagesAreRefusedEverywhere) {
  using Change = std::function<void(Traffic&)>;
  const std::vector<std::pair<Change, std::string>> changes = {
      {[](Traffic& t) { t.receives.front().bytes = 7; }, " with tag 3 is sent with 8 bytes and received with 7"},
      {[](Traffic& t) { t.receives.clear(); }, " with tag 3 is sent but not received"},
      {[](Traffic& t) { t.receives.push_back({t.receives.front().peer, 4, 8}); },
       " with tag 4 is received but not sent"},
      {[](Traffic& t) { t.receives.push_back(t.receives.front()); },
       " with tag 3 is received but not sent, or received "},
      {[](Traffic& t) { t.sends.push_back(t.sends.front()); }, " with tag 3 is sent twice in a step"}};
  for (const auto& [change, text] : changes)
    with_nccl_ranks("stub", 2, [&](Transport& transport) {
      const Parcel parcel{1 - transport.rank(), 3, 8};
      Traffic traffic{{parcel}, {parcel}};
      if (transport.rank() == 1) change(traffic);
      const std::string error = failure<Error>([&] { transport.agree_on_traffic(traffic, test_limit()); });
      expect_part(error, "the ranks disagree on a step's messages: the message from rank ");
      expect_part(error, text);
    });
}

TEST(NcclTransportErrors, CountsAreNotCutToIntegers) {
  // 3 GiB, which no function touches: the library's are replaced.
  with_ranks(2, [](Transport& control) {
    std::vector<size_t> counts;
    Library library = load_library(parse_library_choice("stub"));
    const auto count = [&counts](size_t bytes) {
      counts.push_back(bytes);
      return Result::Success;
    };
    library.send = [=, inner = library.send](const void* d, size_t n, DataType t, int p, Communicator c, Stream s) {
      return n == 1 ? inner(d, n, t, p, c, s) : count(n);
    };
    library.recv = [=, inner = library.recv](void* d, size_t n, DataType t, int p, Communicator c, Stream s) {
      return n == 1 ? inner(d, n, t, p, c, s) : count(n);
    };
    const auto transport = make_nccl_transport(library, control);
    constexpr size_t kLarge = (size_t{3} << 30) + 5;
    const Parcel parcel{1 - transport->rank(), 3, kLarge};
    const bool sends = transport->rank() == 0;
    const auto traffic = transport->agree_on_traffic(
        {sends ? std::vector{parcel} : std::vector<Parcel>(), sends ? std::vector<Parcel>() : std::vector{parcel}},
        test_limit());
    transport->begin_traffic(traffic.get());
    char byte = 0;
    Request request = sends ? transport->isend(&byte, kLarge, 1, 3) : transport->irecv(&byte, kLarge, 0, 3);
    transport->wait(request, test_limit(), "nothing");
    EXPECT_EQ(counts, std::vector<size_t>{kLarge});
    transport->begin_traffic(nullptr);
    barrier(control, test_limit());
  });
}

TEST(NcclTransportErrors, RanksCannotShareADeviceOfAnOldNccl) {
  with_ranks(2, [](Transport& control) {
    Library library = load_library(parse_library_choice("stub"));
    library.stub.clear();
    library.version = 22809;
    library.get_device_count = [](int* count) {
      *count = 1;
      return CudaError::Success;
    };
    EXPECT_EQ(
        failure<Error>([&] { make_nccl_transport(library, control); }),
        "--transport nccl: 2 ranks on a machine with 1 device need NCCL 2.30 or newer and "
        "NCCL_MULTI_RANK_GPU_ENABLE=1; this is nccl 2.28.9. If each rank has a device of its own, let all ranks see "
        "all devices (CUDA_VISIBLE_DEVICES)");
    library.get_device_count = [](int* count) {
      *count = 0;
      return CudaError::Success;
    };
    EXPECT_EQ(failure<Error>([&] { make_nccl_transport(library, control); }),
              "--transport nccl: there is no CUDA device on this machine");
  });
}

}  // namespace
}  // namespace plumbline::transport::nccl
