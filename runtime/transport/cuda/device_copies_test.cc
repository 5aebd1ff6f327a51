// Messages between memories of devices, on the stub's streams. A "kernel" here is a copy on a rank's compute stream: it
// runs later than the host that starts it, as a device's kernels do.
#include "runtime/transport/cuda/device_copies.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <list>
#include <numeric>
#include <thread>

#include "runtime/error.h"
#include "runtime/testing/refusal.h"
#include "runtime/transport/cuda/staged_transport.h"
#include "runtime/transport/nccl/library.h"
#include "runtime/transport/threads/threads.h"

namespace plumbline::transport::cuda {
namespace {

constexpr int kRounds = 8;
constexpr size_t kWords = 300;
using Words = std::array<int, kWords>;

Library stub(const std::string& modes) { return nccl::load_library(nccl::parse_library_choice("stub:" + modes)); }

Words words(int rank, int round) {
  Words made;
  std::iota(made.begin(), made.end(), 1000000 * rank + 1000 * round);
  return made;
}

/// A rank's memory on its device. The sources of kernels live as long.
struct DeviceMemory {
  Words sent = {}, received = {};
  std::array<Words, kRounds> made, kept = {}, garbage;
};

void run_kernel(const Library& library, Stream stream, Words& to, const Words& from) {
  check(library, library.memcpy_async(to.data(), from.data(), sizeof to, CopyKind::Default, stream), "kernel");
}

void synchronize(const Library& library, Stream stream) {
  Event event = nullptr;
  library.event_create_with_flags(&event, kEventDisableTiming);
  library.event_record(event, stream);
  while (library.event_query(event) == CudaError::NotReady) std::this_thread::yield();
  library.event_destroy(event);
}

/// One message to the next rank and one from the rank before, in the same memory round after round; the host waits for
/// no kernel. Returns the number of rounds in which a rank received something else than was sent.
int exchange_rounds(Transport& transport, const Library& library, Stream compute, DeviceMemory& memory) {
  const int next = (transport.rank() + 1) % transport.size();
  const int before = (transport.rank() + transport.size() - 1) % transport.size();
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  for (int round = 0; round < kRounds; ++round) {
    memory.made[round] = words(transport.rank(), round);
    memory.garbage[round].fill(-1);
    run_kernel(library, compute, memory.sent, memory.made[round]);
    Request send = transport.isend(memory.sent.data(), sizeof memory.sent, next, round);
    Request receive = transport.irecv(memory.received.data(), sizeof memory.received, before, round);
    transport.wait(receive, deadline, "the message of a round");
    run_kernel(library, compute, memory.kept[round], memory.received);
    run_kernel(library, compute, memory.received, memory.garbage[round]);
    transport.wait(send, deadline, "the send of a round");
    run_kernel(library, compute, memory.sent, memory.garbage[round]);
  }
  synchronize(library, compute);
  int wrong = 0;
  for (int round = 0; round < kRounds; ++round) wrong += memory.kept[round] != words(before, round);
  return wrong;
}

/// With a library that leaves out waits, copies may end after everything else: the memory stays.
int wrong_rounds(int ranks, Library library) {
  static std::list<std::vector<DeviceMemory>> all;
  std::vector<DeviceMemory>& memory = all.emplace_back(ranks);
  DeviceCopies copies(std::move(library), ranks);
  std::atomic<int> wrong = 0;
  run_thread_ranks(
      ranks,
      [&](Transport& transport) {
        const int rank = transport.rank();
        wrong += exchange_rounds(transport, copies.library(), copies.compute_stream(rank), memory[rank]);
      },
      &copies);
  return wrong;
}

TEST(DeviceCopies, MessagesKeepToTheOrderOfTheStreams) {
  for (const char* modes : {"eager", "late", "poison", "late,poison"})
    for (const int ranks : {1, 2, 4}) EXPECT_EQ(wrong_rounds(ranks, stub(modes)), 0) << modes << ", ranks " << ranks;
}

TEST(DeviceCopies, AMissingWaitIsSeen) {
  Library library = stub("late,poison");
  library.stream_wait_event = [](Stream, Event, unsigned) { return CudaError::Success; };
  EXPECT_GT(wrong_rounds(2, library), 0);
}

TEST(DeviceCopies, SlowCopiesShowAMissingWaitWithoutTheStubsModes) {
  Library library = with_slow_copies(stub("eager"));
  EXPECT_EQ(wrong_rounds(2, library), 0);
  library.stream_wait_event = [](Stream, Event, unsigned) { return CudaError::Success; };
  EXPECT_GT(wrong_rounds(2, library), 0);
}

TEST(DeviceCopies, ATestIsTrueOnlyAfterTheCopy) {
  DeviceCopies copies(stub("late"), 2);
  const auto ends = make_thread_transports(2, &copies);
  int sent = 7, received = 0;
  Request receive = ends[1]->irecv(&received, sizeof received, 0, 1);
  Request send = ends[0]->isend(&sent, sizeof sent, 1, 1);
  EXPECT_FALSE(send.empty()) << "the memory is still needed";
  while (!ends[0]->test(send)) std::this_thread::yield();
  EXPECT_EQ(received, 7);
  while (!ends[1]->test(receive)) std::this_thread::yield();
}

TEST(DeviceCopies, AMessageOfAnotherSizeIsAnErrorAndNoCopy) {
  DeviceCopies copies(stub("eager"), 2);
  const auto ends = make_thread_transports(2, &copies);
  const std::array<int, 2> sent = {7, 8};
  int received = 0;
  EXPECT_FALSE(ends[0]->isend(sent.data(), sizeof sent, 1, 1).empty());
  Request receive = ends[1]->irecv(&received, sizeof received, 0, 1);
  const std::string text =
      testing::failure<Error>([&] { ends[1]->wait(receive, Deadline::after(std::chrono::seconds(5)), "a number"); });
  EXPECT_NE(text.find("8 bytes"), std::string::npos) << text;
  EXPECT_EQ(received, 0);
}

TEST(DeviceCopies, AMessageBetweenADeviceAndTheHostIsRefusedOnBothSides) {
  Library library = stub("apart");  // only memory of cudaHostAlloc is a device's
  DeviceCopies copies(library, 2);
  void* device = nullptr;
  ASSERT_EQ(library.host_alloc(&device, 4, kHostAllocDefault), CudaError::Success);
  {
    const auto ends = make_thread_transports(2, &copies);
    int host = 0;
    Request receive = ends[1]->irecv(&host, sizeof host, 0, 1);
    const std::string text = testing::failure<Error>([&] { ends[0]->isend(device, sizeof host, 1, 1); });
    EXPECT_NE(text.find("between memory of a device and memory of the host"), std::string::npos) << text;
    ends[1]->wait(receive, Deadline::after(std::chrono::seconds(5)), "the receive, which the error completed");
    // Memory of the host on both sides passes as without devices.
    int sent = 5;
    Request second = ends[1]->irecv(&host, sizeof host, 0, 2);
    EXPECT_TRUE(ends[0]->isend(&sent, sizeof sent, 1, 2).empty());
    ends[1]->wait(second, Deadline::after(std::chrono::seconds(5)), "a number");
    EXPECT_EQ(host, 5);
  }
  library.free_host(device);
}

TEST(DeviceCopies, WithoutADeviceThereIsNone) {
  Library library = stub("eager");
  library.get_device_count = [](int* count) {
    *count = 0;
    return CudaError::Success;
  };
  EXPECT_EQ(testing::failure<Error>([&] { DeviceCopies(library, 2); }),
            "--device cuda: there is no CUDA device on this machine");
}

TEST(StagedTransport, MessagesKeepToTheOrderOfTheStreams) {
  for (const char* modes : {"eager", "late,poison"}) {
    const Library library = stub(modes);
    std::vector<DeviceMemory> memory(3);
    std::atomic<int> wrong = 0;
    run_thread_ranks(3, [&](Transport& inner) {
      Stream compute = nullptr;
      library.stream_create_with_flags(&compute, kStreamNonBlocking);
      wrong += exchange_rounds(*staged_transport(inner, library, compute, std::chrono::seconds(30)), library, compute,
                               memory[inner.rank()]);
      library.stream_destroy(compute);
    });
    EXPECT_EQ(wrong, 0) << modes;
  }
}

TEST(StagedTransport, ACopyThatDoesNotEndIsNamed) {
  const Library library = stub("eager");
  Library endless = library;
  endless.event_query = [](Event) { return CudaError::NotReady; };
  const Words sent = words(0, 0);
  run_thread_ranks(1, [&](Transport& inner) {
    Stream compute = nullptr;
    library.stream_create_with_flags(&compute, kStreamNonBlocking);
    {
      const auto staged = staged_transport(inner, endless, compute, std::chrono::milliseconds(50));
      EXPECT_EQ(testing::failure<TimeoutError>([&] { staged->isend(sent.data(), 8, 0, 1); }),
                "rank 0: the copy of a message of 8 bytes between host and device is still in progress");
      synchronize(library, compute);  // the copy uses the transport's memory until then
    }
    library.stream_destroy(compute);
  });
}

}  // namespace
}  // namespace plumbline::transport::cuda
