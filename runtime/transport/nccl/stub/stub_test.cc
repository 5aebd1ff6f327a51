// The stub's promises, through the same table of functions that the transport uses. Ranks are threads with blocking
// communicators; nccl_transport_test.cc has processes and communicators that do not block.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/testing/refusal.h"
#include "runtime/transport/nccl/library.h"

namespace plumbline::transport::nccl {
namespace {

using namespace std::chrono_literals;
using Bytes = std::vector<unsigned char>;

constexpr auto kLimit = 20s;

/// Two ranks of one communicator, each with a stream and an event, driven by one thread. Declare the memory of its
/// operations before it, since they may run until it ends.
class StubPair {
 public:
  explicit StubPair(const std::string& modes)
      : library_(load_library(parse_library_choice(modes.empty() ? "stub" : "stub:" + modes))) {
    UniqueId id;
    EXPECT_EQ(library_.get_unique_id(&id), Result::Success);
    std::thread other([&] { join(1, id); });
    join(0, id);
    other.join();
  }
  ~StubPair() {
    for (const Communicator comm : communicators_)
      if (comm != nullptr) library_.comm_abort(comm);
    for (const Stream stream : streams_) library_.stream_destroy(stream);
    for (const Event event : events_) library_.event_destroy(event);
  }

  const Library& library() const { return library_; }
  Communicator communicator(int rank) const { return communicators_[rank]; }
  Stream stream(int rank) const { return streams_[rank]; }
  void abort(int rank) { library_.comm_abort(std::exchange(communicators_[rank], nullptr)); }

  /// Lives as long as the pair.
  Event event() {
    Event event;
    EXPECT_EQ(library_.event_create_with_flags(&event, cuda::kEventDisableTiming), CudaError::Success);
    return events_.emplace_back(event);
  }

  /// The event that is behind the operation.
  Event send(int rank, const void* data, size_t bytes) {
    EXPECT_EQ(library_.send(data, bytes, DataType::Uint8, 1 - rank, communicators_[rank], streams_[rank]),
              Result::Success);
    return behind(rank);
  }
  Event receive(int rank, void* data, size_t bytes) {
    EXPECT_EQ(library_.recv(data, bytes, DataType::Uint8, 1 - rank, communicators_[rank], streams_[rank]),
              Result::Success);
    return behind(rank);
  }
  bool happened(Event event) const { return library_.event_query(event) == CudaError::Success; }
  bool happens(Event event) const {
    const auto end = std::chrono::steady_clock::now() + kLimit;
    while (!happened(event)) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(100us);
    }
    return true;
  }
  std::string error(int rank) const {
    const auto end = std::chrono::steady_clock::now() + kLimit;
    Result state = Result::Success;
    while (state == Result::Success && std::chrono::steady_clock::now() < end) {
      library_.comm_get_async_error(communicators_[rank], &state);
      std::this_thread::sleep_for(100us);
    }
    return state == Result::Success ? "no error" : library_.get_last_error(communicators_[rank]);
  }

 private:
  void join(int rank, UniqueId id) {
    Config config;
    config.blocking = 1;
    ASSERT_EQ(library_.comm_init_rank_config(&communicators_[rank], 2, id, rank, &config), Result::Success);
    ASSERT_EQ(library_.stream_create_with_flags(&streams_[rank], cuda::kStreamNonBlocking), CudaError::Success);
  }
  Event behind(int rank) {
    const Event behind = event();
    EXPECT_EQ(library_.event_record(behind, streams_[rank]), CudaError::Success);
    return behind;
  }

  Library library_;
  Communicator communicators_[2] = {};
  Stream streams_[2] = {};
  std::vector<Event> events_;
};

Bytes counting(size_t bytes, unsigned char first = 1) {
  Bytes data(bytes);
  std::iota(data.begin(), data.end(), first);
  return data;
}

class NcclStub : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Each, NcclStub,
                         ::testing::Values("", "eager", "rendezvous", "late", "poison", "shuffle", "late,poison",
                                           "rendezvous,shuffle", "late,poison,shuffle", "eager,poison,shuffle"));

TEST_P(NcclStub, SaysThatItIsAStub) {
  const StubPair pair(GetParam());
  const std::string modes = *GetParam() == '\0' ? "eager" : GetParam();
  EXPECT_EQ(pair.library().name(), "nccl (stub: " + modes + ")");
  testing::expect_part(pair.library().path, "libplumbline_nccl_stub.so");
}

TEST_P(NcclStub, MessagesArriveInOrderAndWhole) {
  StubPair pair(GetParam());
  for (const bool receive_first : {true, false}) {
    // Larger than the ring, of it, and smaller; both directions.
    const std::vector<size_t> sizes = {1, 7, 4096, 65536, 300001, 16, 3};
    std::vector<Bytes> sent, received;
    std::vector<Event> events;
    for (size_t i = 0; i < sizes.size(); ++i) {
      sent.push_back(counting(sizes[i], static_cast<unsigned char>(3 * i + receive_first)));
      received.emplace_back(sizes[i]);
    }
    for (size_t i = 0; i < sizes.size(); ++i) {
      const int sender = i % 3 == 2;  // at the same place of both streams, so there is no cycle
      if (receive_first) events.push_back(pair.receive(1 - sender, received[i].data(), sizes[i]));
      events.push_back(pair.send(sender, sent[i].data(), sizes[i]));
      if (!receive_first) events.push_back(pair.receive(1 - sender, received[i].data(), sizes[i]));
    }
    for (const Event event : events) ASSERT_TRUE(pair.happens(event));
    EXPECT_EQ(received, sent);
  }
}

TEST(NcclStubModes, EagerSendsEndBeforeTheReceive) {
  const Bytes sent = counting(1000);
  Bytes received(1000);
  StubPair pair("eager");
  ASSERT_TRUE(pair.happens(pair.send(0, sent.data(), sent.size())));
  ASSERT_TRUE(pair.happens(pair.receive(1, received.data(), received.size())));
  EXPECT_EQ(received, sent);
}

TEST(NcclStubModes, RendezvousBlocksTheStreamUntilTheReceive) {
  for (const char* modes : {"rendezvous", "late"}) {
    const Bytes sent = counting(8);
    Bytes received(8);
    StubPair pair(modes);
    const Event send = pair.send(0, sent.data(), sent.size());
    std::this_thread::sleep_for(20ms);
    EXPECT_FALSE(pair.happened(send)) << modes;
    EXPECT_TRUE(pair.happens(pair.receive(1, received.data(), received.size()))) << modes;
    EXPECT_TRUE(pair.happens(send)) << modes;
  }
}

TEST(NcclStubModes, LateReadsASendThatWasOverwritten) {
  Bytes sent = counting(64), received(64);
  StubPair pair("late");
  const Event receive = pair.receive(1, received.data(), received.size());
  pair.send(0, sent.data(), sent.size());
  std::ranges::fill(sent, 0xaa);  // before its event: the mistake that the mode shows
  ASSERT_TRUE(pair.happens(receive));
  EXPECT_EQ(received, Bytes(64, 0xaa));
}

TEST(NcclStubModes, LateWritesAReceiveWhenItIsAskedFor) {
  const Bytes sent = counting(64);
  Bytes received(64, 1);
  StubPair pair("late");
  const Event receive = pair.receive(1, received.data(), received.size()),
              send = pair.send(0, sent.data(), sent.size());
  ASSERT_TRUE(pair.happens(send));
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(received, Bytes(64, 1));  // it has arrived, but nobody could know
  // Asked for through an event of another stream.
  const Event behind = pair.event();
  const Library& library = pair.library();
  library.stream_wait_event(pair.stream(0), receive, 0);
  library.event_record(behind, pair.stream(0));
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(pair.happens(behind));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kLimit);
  EXPECT_EQ(received, sent);
}

TEST(NcclStubModes, LateOperationsEndThoughNobodyAsks) {
  const Bytes sent = counting(64);
  Bytes received(64, 1);
  StubPair pair("late");
  pair.receive(1, received.data(), received.size());
  pair.send(0, sent.data(), sent.size());
  const auto end = std::chrono::steady_clock::now() + kLimit;
  const volatile unsigned char* last = &received.back();
  while (*last != sent.back() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(received, sent);
}

TEST(NcclStubModes, PoisonFillsAReceiveUntilItsEvent) {
  const Bytes sent = counting(64);
  Bytes received(64, 1);
  StubPair pair("poison");
  const Event receive = pair.receive(1, received.data(), received.size());
  EXPECT_EQ(received, Bytes(64, 0xff));
  pair.send(0, sent.data(), sent.size());
  ASSERT_TRUE(pair.happens(receive));
  EXPECT_EQ(received, sent);
}

TEST(NcclStubModes, PoisonLeavesMemoryThatAnEarlierOperationReads) {
  Bytes memory = counting(64), elsewhere(64), again = counting(64, 100);
  StubPair pair("poison,rendezvous");
  const Event send = pair.send(0, memory.data(), 64);        // waits for its receive
  const Event receive = pair.receive(0, memory.data(), 64);  // on the same stream, so it is later
  EXPECT_EQ(memory, counting(64));
  ASSERT_TRUE(pair.happens(pair.receive(1, elsewhere.data(), 64)));
  EXPECT_EQ(elsewhere, counting(64));
  ASSERT_TRUE(pair.happens(send));
  pair.send(1, again.data(), 64);
  ASSERT_TRUE(pair.happens(receive));
  EXPECT_EQ(memory, again);
}

TEST(NcclStubModes, ShuffleChangesTheOrderBetweenCommunicators) {
  // With each of many messages on a pair of its own, some must end before one that was posted earlier.
  constexpr int kPairs = 12;
  std::vector<std::unique_ptr<StubPair>> pairs;
  for (int i = 0; i < kPairs; ++i) pairs.push_back(std::make_unique<StubPair>("shuffle"));
  bool overtaken = false;
  for (int tries = 0; tries < 20 && !overtaken; ++tries) {
    std::vector<Bytes> received(kPairs, Bytes(8));
    const Bytes sent = counting(8);
    std::vector<Event> events;
    for (int i = 0; i < kPairs; ++i) {
      events.push_back(pairs[i]->receive(1, received[i].data(), 8));
      pairs[i]->send(0, sent.data(), 8);
    }
    for (bool all = false; !all;) {
      all = true;
      bool earlier = true;
      for (int i = 0; i < kPairs; ++i) {
        const bool happened = pairs[i]->happened(events[i]);
        overtaken = overtaken || (happened && !earlier);
        earlier = earlier && happened;
        all = all && happened;
      }
    }
  }
  EXPECT_TRUE(overtaken);
}

TEST(NcclStubModes, ApartRefusesOrdinaryMemory) {
  StubPair pair("apart");
  const Library& library = pair.library();
  Bytes ordinary(8);
  cuda::PointerAttributes attributes;
  EXPECT_EQ(library.pointer_get_attributes(&attributes, ordinary.data()), CudaError::Success);
  EXPECT_EQ(attributes.type, cuda::MemoryType::Unregistered);
  EXPECT_EQ(library.send(ordinary.data(), 8, DataType::Uint8, 1, pair.communicator(0), pair.stream(0)),
            Result::InvalidUsage);
  testing::expect_part(library.get_last_error(pair.communicator(0)), "cudaHostAlloc");
  void* sent = nullptr;
  void* received = nullptr;
  for (void** memory : {&sent, &received})
    ASSERT_EQ(library.host_alloc(memory, 8, cuda::kHostAllocDefault), CudaError::Success);
  std::memcpy(sent, "0123456", 8);
  const Event receive = pair.receive(1, received, 8);
  pair.send(0, sent, 8);
  ASSERT_TRUE(pair.happens(receive));
  EXPECT_EQ(std::memcmp(sent, received, 8), 0);
  for (void* memory : {sent, received}) library.free_host(memory);
}

TEST_P(NcclStub, DifferentSizesAreAnErrorThatNamesBothEnds) {
  for (const auto& [sent, expected] : {std::pair<size_t, size_t>{64, 60}, {60, 64}, {100000, 8}, {8, 100000}}) {
    Bytes data(sent), received(expected);
    StubPair pair(GetParam());
    pair.send(0, data.data(), sent);
    pair.receive(1, received.data(), expected);
    const std::string error = pair.error(1);
    testing::expect_part(error, "send 0 of rank 0 to rank 1, " + std::to_string(sent) + " bytes, stream ");
    testing::expect_part(error, "receive 0 of rank 1 from rank 0, " + std::to_string(expected) + " bytes, stream ");
    if (sent > 16384 || std::string(GetParam()).find("rendezvous") != std::string::npos) {
      EXPECT_EQ(pair.error(0), error);
    }
  }
}

TEST(NcclStubModes, ACyclicWaitNamesBothEnds) {
  const Bytes sent = counting(8);
  Bytes received(16);
  StubPair pair("rendezvous");
  // Both ranks send first, each on its only stream.
  const Event first = pair.send(0, sent.data(), 8);
  pair.receive(0, received.data(), 8);
  pair.send(1, sent.data(), 8);
  pair.receive(1, received.data() + 8, 8);
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(pair.happened(first));
  const std::string words = pair.library().get_last_error(pair.communicator(0));
  testing::expect_part(words, "send 0 of rank 0 to rank 1, 8 bytes, stream ");
  testing::expect_part(words, "receive 0 of rank 1 from rank 0, 8 bytes, stream ");
  testing::expect_part(words, "is queued behind: send 0 of rank 1 to rank 0, 8 bytes, stream ");
  testing::expect_part(words, "is queued behind: send 0 of rank 0 to rank 1, 8 bytes, stream ");
}

TEST(NcclStubModes, AbortEndsWhatBlocks) {
  const Bytes sent = counting(8);
  StubPair pair("rendezvous");
  const Event send = pair.send(0, sent.data(), 8);
  std::this_thread::sleep_for(5ms);
  EXPECT_FALSE(pair.happened(send));
  pair.abort(0);
  EXPECT_TRUE(pair.happens(send));
}

TEST(NcclStubModes, AStreamWaitsForAnEventOfAnother) {
  const Bytes sent = counting(8);
  StubPair pair("rendezvous");
  const Event send = pair.send(0, sent.data(), 8);
  const Library& library = pair.library();
  const Event behind = pair.event();
  ASSERT_EQ(library.stream_wait_event(pair.stream(1), send, 0), CudaError::Success);
  ASSERT_EQ(library.event_record(behind, pair.stream(1)), CudaError::Success);
  std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(pair.happened(behind));
  pair.abort(0);
  EXPECT_TRUE(pair.happens(behind));
}

TEST(NcclStubModes, AnOperationThatWasNotAskedForIsNotYetOnItsStream) {
  // In a communicator that does not block. An event recorded before NCCL took the operation is not behind it.
  const Library library = load_library(parse_library_choice("stub:rendezvous"));
  UniqueId id;
  library.get_unique_id(&id);
  Communicator communicators[2];
  Result state = Result::InProgress;
  for (int rank : {0, 1}) {
    Config config;
    config.blocking = 0;
    EXPECT_EQ(library.comm_init_rank_config(&communicators[rank], 2, id, rank, &config), Result::InProgress);
  }
  for (const Communicator comm : communicators) do
      library.comm_get_async_error(comm, &state);
    while (state == Result::InProgress);
  ASSERT_EQ(state, Result::Success);
  Stream stream;
  Event early, behind;
  library.stream_create_with_flags(&stream, cuda::kStreamNonBlocking);
  for (Event* event : {&early, &behind}) library.event_create_with_flags(event, cuda::kEventDisableTiming);
  const Bytes sent = counting(8);
  EXPECT_EQ(library.send(sent.data(), 8, DataType::Uint8, 1, communicators[0], stream), Result::InProgress);
  library.event_record(early, stream);
  EXPECT_EQ(library.event_query(early), CudaError::Success);
  library.comm_get_async_error(communicators[0], &state);
  EXPECT_EQ(state, Result::Success);
  library.event_record(behind, stream);
  EXPECT_EQ(library.event_query(behind), CudaError::NotReady);
  for (const Communicator comm : communicators) library.comm_abort(comm);
  library.stream_destroy(stream);
  for (const Event event : {early, behind}) library.event_destroy(event);
}

}  // namespace
}  // namespace plumbline::transport::nccl
