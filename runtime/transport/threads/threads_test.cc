#include "runtime/transport/threads/threads.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <string>
#include <thread>
#include <vector>

#include "runtime/error.h"
#include "runtime/testing/refusal.h"

namespace plumbline::transport {
namespace {

using testing::failure;

Deadline limit() { return Deadline::after(std::chrono::seconds(20)); }

void abort_while_others_wait(int round) {
  auto transports = make_thread_transports(3);
  const Deadline deadline = limit();
  std::string texts[2];
  {
    std::vector<std::jthread> threads;
    for (int rank : {0, 1}) {
      threads.emplace_back([&, rank] {
        texts[rank] = failure<PeerError>([&] {
          char byte = 0;
          Request ready = transports[rank]->isend(&byte, 1, 2, 1);
          Request request = transports[rank]->irecv(&byte, 1, 2, 0);
          transports[rank]->wait(ready, limit(), "about to wait");
          transports[rank]->wait(request, deadline, "never sent");
        });
      });
    }
    for (int rank : {0, 1}) {
      char byte;
      Request ready = transports[2]->irecv(&byte, 1, rank, 1);
      transports[2]->wait(ready, limit(), "the others");
    }
    for (int i = 0; i < round * 10; ++i) std::this_thread::yield();
    transports[2]->abort("stage 5 does not fit");
    transports[2]->abort("a later reason");
  }
  EXPECT_FALSE(deadline.passed()) << "woken by the deadline, not by the abort";
  EXPECT_EQ(texts[0], "rank 2: stage 5 does not fit");
  EXPECT_EQ(texts[1], "rank 2: stage 5 does not fit");
}

TEST(ThreadTransport, AbortWakesWhoeverWaitsWithTheFirstReason) {
  // Over the rounds the abort reaches the others before they wait, while they fall asleep, and asleep.
  for (int round = 0; round < 50 && !::testing::Test::HasFailure(); ++round) abort_while_others_wait(round);
}

TEST(ThreadTransport, AfterAnAbortEveryCallThrows) {
  auto transports = make_thread_transports(2);
  char byte = 0;
  Request request = transports[0]->irecv(&byte, 1, 1, 0);
  transports[1]->abort("enough");
  EXPECT_THROW(transports[0]->test(request), PeerError);
  EXPECT_THROW(transports[0]->wait(request, limit(), ""), PeerError);
  EXPECT_THROW(transports[0]->isend(&byte, 1, 1, 0), PeerError);
  EXPECT_THROW(transports[0]->irecv(&byte, 1, 1, 0), PeerError);
  EXPECT_THROW(transports[1]->isend(&byte, 1, 0, 0), PeerError);
}

TEST(ThreadTransport, ASendNobodyTakesTimesOut) {
  auto transports = make_thread_transports(2);
  char byte = 0;
  Request request = transports[0]->isend(&byte, 1, 1, 0);
  EXPECT_FALSE(transports[0]->test(request));
  EXPECT_EQ(failure<TimeoutError>([&] {
              transports[0]->wait(request, Deadline::after(std::chrono::milliseconds(20)), "gradient of stage 1");
            }),
            "rank 0: rank 1 took no message within 0.02 s: gradient of stage 1");
  // Withdrawn: a receive posted now must not copy from it.
  Request late = transports[1]->irecv(&byte, 1, 0, 0);
  EXPECT_FALSE(transports[1]->test(late));
}

TEST(ThreadTransport, AnEndpointThatIsGoneLeavesNothingBehind) {
  auto transports = make_thread_transports(2);
  char byte = 0;
  (void)transports[0]->isend(&byte, 1, 1, 0);
  (void)transports[0]->irecv(&byte, 1, 1, 1);
  transports[0].reset();
  Request from_gone = transports[1]->irecv(&byte, 1, 0, 0);
  Request to_gone = transports[1]->isend(&byte, 1, 0, 1);
  EXPECT_FALSE(transports[1]->test(from_gone));
  EXPECT_FALSE(transports[1]->test(to_gone));
}

TEST(ThreadTransport, WithdrawWhileMessagesAreBeingTaken) {
  // For the thread sanitizer: the receiver copies from sends that their owner withdraws and overwrites.
  auto transports = make_thread_transports(2);
  constexpr int kRounds = 200;
  std::jthread receiver([&] {
    std::vector<char> data(5000);
    for (int i = 0; i < kRounds; ++i) {
      Request request = transports[1]->irecv(data.data(), data.size(), 0, 0);
      for (int polls = 0; polls < 20 && !transports[1]->test(request); ++polls) std::this_thread::yield();
      transports[1]->withdraw();
    }
  });
  std::vector<char> data(5000);
  for (int i = 0; i < kRounds; ++i) {
    (void)transports[0]->isend(data.data(), data.size(), 1, 0);
    transports[0]->withdraw();
    data.assign(data.size(), static_cast<char>(i));
  }
}

TEST(RunThreadRanks, TheFirstReasonIsThrownWithItsTypeAndRank) {
  const auto run = [](auto error) {
    run_thread_ranks(3, [&](Transport& transport) {
      if (transport.rank() == 1) throw error;
      char byte;
      Request request = transport.irecv(&byte, 1, 1, 0);
      transport.wait(request, limit(), "never sent");
    });
  };
  EXPECT_EQ(failure<InputError>([&] { run(InputError("no such stage")); }), "rank 1: no such stage");
  EXPECT_EQ(failure<TimeoutError>([&] { run(TimeoutError("rank 1: no message")); }), "rank 1: no message");
  EXPECT_EQ(failure<Error>([&] { run(Error("rank 1, position 4: no")); }), "rank 1, position 4: no");
  EXPECT_EQ(failure<Error>([&] { run(Error("rank 10 is missing")); }), "rank 1: rank 10 is missing");
  EXPECT_EQ(failure<Error>([&] { run(std::runtime_error("out of luck")); }), "rank 1: out of luck");
  EXPECT_EQ(failure<Error>([&] { run(42); }), "rank 1: an exception that is not a std::exception");
}

/// Threads that are started from now on ask for a stack that no address space has.
void let_no_thread_start() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t{1} << 60);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

TEST(RunThreadRanks, AThreadThatCannotBeStartedStopsTheOthers) {
  constexpr int kRanks = 1000;  // the first one runs before the last one is started
  pthread_attr_t before;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  const Deadline deadline = limit();
  const std::string said = failure<Error>([&] {
    run_thread_ranks(kRanks, [&](Transport& transport) {
      if (transport.rank() == kRanks - 1) return transport.abort("all have started");
      if (transport.rank() == 0) let_no_thread_start();
      char byte = 0;
      Request request = transport.irecv(&byte, 1, kRanks - 1, 0);
      transport.wait(request, deadline, "never sent");
    });
  });
  pthread_setattr_default_np(&before);
  pthread_attr_destroy(&before);
  if (said.ends_with(": all have started")) GTEST_SKIP() << "rank 0 came too late";
  EXPECT_NE(said.find(": its thread cannot be started: "), std::string::npos) << said;
  EXPECT_FALSE(deadline.passed()) << "ended by the deadline, not by the abort";
}

TEST(RunThreadRanks, AnAbortWithoutAnotherReasonIsAPeerError) {
  EXPECT_EQ(failure<PeerError>([] {
              run_thread_ranks(2, [](Transport& transport) {
                if (transport.rank() == 0) return transport.abort("stop");
                char byte;
                Request request = transport.irecv(&byte, 1, 0, 0);
                transport.wait(request, limit(), "never sent");
              });
            }),
            "rank 0: stop");
}

}  // namespace
}  // namespace plumbline::transport
