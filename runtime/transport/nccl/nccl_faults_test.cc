// Each fault of faults.h is noticed on the stub, in the mode that is there for it, and not without that mode where it
// would go unnoticed.
#include "runtime/transport/nccl/faults.h"

#include <gtest/gtest.h>

#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "runtime/error.h"
#include "runtime/testing/refusal.h"
#include "runtime/testing/spawn.h"
#include "runtime/transport/collectives.h"
#include "runtime/transport/nccl/nccl_transport.h"

namespace plumbline::transport::nccl {
namespace {

using plumbline::testing::expect_part;
using plumbline::testing::with_ranks;
using Bytes = std::vector<uint8_t>;
using Change = std::function<Library(Library, Happened)>;
using Around = std::unique_ptr<Transport> (*)(Transport&, Happened);

/// What rank 1 received in place of 16 bytes with value 7 and then 32 with value 8, or the error.
struct Outcome {
  std::vector<Bytes> received;
  std::string error;
  int happened = 0;

  bool right() const { return received == std::vector{Bytes(16, 7), Bytes(32, 8)}; }
};

struct Memory {
  Bytes one = Bytes(16, 7), two = Bytes(32, 8), own = Bytes(8, 9);
  Bytes first = Bytes(16, 1), second = Bytes(32, 1), other = Bytes(8, 1);
};

/// Rank 0 sends two messages, and both ranks one to each other at the same time.
Outcome exchange(Transport& transport, Memory& memory, Clock::duration limit) {
  const int peer = 1 - transport.rank();
  const std::vector<Parcel> there = {{peer, 1, 16}, {peer, 2, 32}, {peer, 3, 8}}, back = {{peer, 4, 8}};
  const bool first = transport.rank() == 0;
  const auto traffic =
      transport.agree_on_traffic({first ? there : back, first ? back : there}, Deadline::after(limit * 10));
  Outcome outcome;
  try {
    transport.begin_traffic(traffic.get());
    const auto finish = [&](Request request) { transport.wait(request, Deadline::after(limit), "a fault"); };
    if (first) {
      const Request a = transport.isend(memory.one.data(), 16, 1, 1), b = transport.isend(memory.two.data(), 32, 1, 2);
      finish(a), finish(b);
    } else {
      const Request a = transport.irecv(memory.first.data(), 16, 0, 1),
                    b = transport.irecv(memory.second.data(), 32, 0, 2);
      finish(a), finish(b);
      outcome.received = {memory.first, memory.second};
    }
    const Request out = transport.isend(memory.own.data(), 8, peer, first ? 3 : 4),
                  in = transport.irecv(memory.other.data(), 8, peer, first ? 4 : 3);
    finish(out), finish(in);
    transport.begin_traffic(nullptr);
  } catch (const Error& error) {
    outcome.error = error.what();
  }
  return outcome;
}

/// Calls `judge` with the outcome of each rank, and the transport by which ranks may tell each other theirs.
void with_fault(const std::string& choice, const Change& change, Around around,
                const std::function<void(Transport& control, const Outcome&)>& judge,
                Clock::duration limit = std::chrono::seconds(20)) {
  with_ranks(2, [&](Transport& control) {
    std::atomic<int> happened = 0;
    const auto count = [&] { ++happened; };
    const LibraryChoice parsed = parse_library_choice(choice);
    Library library = load_library(parsed);
    if (change) library = change(std::move(library), count);
    std::unique_ptr<Transport> changed;  // whose memory NCCL accesses until its transport ends
    Memory memory;
    const auto nccl = make_nccl_transport(library, control, {.headers = parsed.headers});
    if (around != nullptr) changed = around(*nccl, count);
    Outcome outcome = exchange(changed ? *changed : *nccl, memory, limit);
    outcome.happened = happened;
    if (!outcome.error.empty()) nccl->withdraw();
    judge(control, outcome);
    barrier(control, Deadline::after(std::chrono::seconds(60)));
  });
}

TEST(NcclFaults, WithoutAFaultAllIsRight) {
  for (const char* choice : {"stub", "stub:rendezvous", "stub:late,poison,shuffle,headers"})
    with_fault(choice, nullptr, nullptr, [&](Transport& control, const Outcome& outcome) {
      EXPECT_EQ(outcome.error, "");
      EXPECT_TRUE(control.rank() == 0 || outcome.right()) << choice;
    });
}

TEST(NcclFaults, AnEventWaitLeftOutShowsPoison) {
  with_fault("stub:late,poison", without_event_waits, with_private_receive_buffers,
             [](Transport& control, const Outcome& outcome) {
               EXPECT_GT(outcome.happened, 0);
               if (control.rank() == 1) {
                 EXPECT_EQ(outcome.received, (std::vector{Bytes(16, 0xff), Bytes(32, 0xff)}));
               }
             });
}

TEST(NcclFaults, ASendOverwrittenAtItsPostArrivesOverwrittenWhenReadLate) {
  with_fault("stub:late", nullptr, with_overwritten_sends, [](Transport& control, const Outcome& outcome) {
    EXPECT_EQ(outcome.error, "");
    if (control.rank() == 1) {
      EXPECT_EQ(outcome.received, (std::vector{Bytes(16, 0xff), Bytes(32, 0xff)}));
    }
  });
}

TEST(NcclFaults, OneStreamForBothDirectionsDeadlocksWithoutBuffers) {
  with_fault(
      "stub:rendezvous", with_one_stream, nullptr,
      [](Transport& control, const Outcome& outcome) {
        expect_part(outcome.error, " within 3 s: a fault");
        // The rank that notices first names both; its abort lets the other's operations go on.
        std::string words;
        const auto errors = gather_bytes(control, 0, std::as_bytes(std::span(outcome.error)),
                                         Deadline::after(std::chrono::seconds(20)));
        for (const auto& error : errors) words.append(reinterpret_cast<const char*>(error.data()), error.size());
        if (control.rank() == 0) expect_part(words, "is queued behind: send ");
      },
      std::chrono::seconds(3));
  with_fault("stub:eager", with_one_stream, nullptr, [](Transport& control, const Outcome& outcome) {
    EXPECT_EQ(outcome.error, "");
    EXPECT_TRUE(control.rank() == 0 || outcome.right());
  });
}

TEST(NcclFaults, AReceiveSmallerThanItsSendNamesBothSizes) {
  for (const char* choice : {"stub:eager", "stub:rendezvous"})
    with_fault(
        choice, with_short_receives, nullptr,
        [&](Transport& control, const Outcome& outcome) {
          if (control.rank() == 0 && choice == std::string("stub:eager")) return;  // its messages were buffered
          expect_part(outcome.error, "sizes differ: send ");
          expect_part(outcome.error, " 16 bytes, stream ");
          expect_part(outcome.error, " 12 bytes, stream ");
        },
        std::chrono::seconds(2));
}

TEST(NcclFaults, SendsInAnotherOrderAreSeenByTheirSizes) {
  with_fault(
      "stub:rendezvous", with_swapped_sends, nullptr,
      [](Transport& control, const Outcome& outcome) {
        if (control.rank() == 1) {
          expect_part(outcome.error, "sizes differ");
        }
      },
      std::chrono::seconds(2));
}

TEST(NcclFaults, AHeaderShowsWhatSizesDoNot) {
  // The header of the first message and its 16 bytes change places.
  with_fault(
      "stub:rendezvous,headers", with_swapped_sends, nullptr,
      [](Transport& control, const Outcome& outcome) {
        if (control.rank() == 1) {
          expect_part(outcome.error, "rank 1: from rank 0 came message 117901063 with tag 117901063 and ");
          expect_part(outcome.error, ", expected message 0 with tag 1 and 16 bytes");
        }
      },
      std::chrono::seconds(2));
}

}  // namespace
}  // namespace plumbline::transport::nccl
