// Features of MPI alone; every rank of the job runs each test.
#include "runtime/transport/mpi/mpi.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "runtime/error.h"
#include "runtime/testing/mpi_session.h"
#include "runtime/testing/refusal.h"

namespace plumbline::transport {
namespace {

Deadline mpi_limit() { return Deadline::after(std::chrono::seconds(20)); }

TEST(MpiTransport, MessagesBeyondMpisCountsKeepContentsAndSize) {
  // With a low limit: the path of messages over 2 GiB. Each rank sends to the next.
  const auto transport = make_mpi_transport(testing::mpi_session(), {.largest_plain_message = 1000});
  const int next = (transport->rank() + 1) % transport->size();
  const int previous = (transport->rank() - 1 + transport->size()) % transport->size();
  for (size_t bytes : {999, 1000, 1001, 2000, 123457}) {
    const auto at = [bytes](int rank, size_t i) { return static_cast<uint8_t>(i * 7 + i / 256 + rank + bytes); };
    std::vector<uint8_t> out(bytes), in(bytes);
    for (size_t i = 0; i < bytes; ++i) out[i] = at(transport->rank(), i);
    Request receive = transport->irecv(in.data(), bytes, previous, 0);
    Request send = transport->isend(out.data(), bytes, next, 0);
    transport->wait(receive, mpi_limit(), "large message");
    transport->wait(send, mpi_limit(), "large message");
    size_t wrong = 0;
    for (size_t i = 0; i < bytes; ++i) wrong += in[i] != at(previous, i);
    EXPECT_EQ(wrong, 0u) << "of " << bytes << " bytes";
  }
  std::vector<uint8_t> out(3000), in(5000);
  (void)transport->isend(out.data(), out.size(), next, 1);
  Request receive = transport->irecv(in.data(), in.size(), previous, 1);
  testing::expect_part(testing::failure([&] { transport->wait(receive, mpi_limit(), "large message"); }),
                       "has 3000 bytes, expected 5000");
}

/// MPI ends a large send when its receiver takes it, and every rank waits for its send first.
TEST(MpiTransport, ARankThatWaitsForItsSendTakesWhatArrives) {
  const auto transport = make_mpi_transport(testing::mpi_session());
  const int next = (transport->rank() + 1) % transport->size();
  const int previous = (transport->rank() - 1 + transport->size()) % transport->size();
  constexpr size_t kBytes = 16 << 20;  // far beyond what an MPI sends eagerly
  std::vector<uint8_t> out(kBytes, static_cast<uint8_t>(transport->rank())), in(kBytes, 255);
  Request receive = transport->irecv(in.data(), kBytes, previous, 2);
  Request send = transport->isend(out.data(), kBytes, next, 2);
  transport->wait(send, mpi_limit(), "the send");
  transport->wait(receive, mpi_limit(), "the receive");
  EXPECT_EQ(in, std::vector<uint8_t>(kBytes, static_cast<uint8_t>(previous)));
}

TEST(MpiTransport, OnlyTheRanksAskedForTakePart) {
  const auto transport = make_mpi_transport(testing::mpi_session(), {.ranks = 1});
  EXPECT_EQ(transport != nullptr, testing::mpi_session().rank() == 0);
  if (transport != nullptr) {
    EXPECT_EQ(transport->size(), 1);
  }
  EXPECT_THROW(make_mpi_transport(testing::mpi_session(), {.ranks = testing::mpi_session().size() + 1}), Error);
}

TEST(MpiSession, ASecondOneIsRefused) { EXPECT_THROW(MpiSession(), Error); }

TEST(MpiSession, TheLauncherIsSeen) { EXPECT_TRUE(launched_under_mpi()); }

}  // namespace
}  // namespace plumbline::transport
