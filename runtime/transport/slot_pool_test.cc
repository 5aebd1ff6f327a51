#include "runtime/transport/slot_pool.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "runtime/error.h"
#include "runtime/testing/refusal.h"

namespace plumbline::transport {
namespace {

TEST(SlotPool, ReusesSlotsButNotHandles) {
  SlotPool<int> pool;
  Request first;
  int* slot = &pool.take(first);
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(pool.find(first), slot);
  const Request stale = first;
  pool.give_back(first);
  EXPECT_TRUE(first.empty());
  EXPECT_EQ(pool.find(stale), nullptr);
  Request second;
  EXPECT_EQ(&pool.take(second), slot);
  EXPECT_EQ(pool.find(stale), nullptr);
  EXPECT_EQ(pool.find(second), slot);
}

TEST(SlotPool, RefusesRequestsThatAreNotOutstanding) {
  SlotPool<int> pool;
  Request request;
  int* const slot = &pool.take(request);
  EXPECT_EQ(&pool.at(request, 3), slot);
  const Request stale = request;
  pool.give_back(request);
  for (const Request& refused : {stale, Request()})
    EXPECT_EQ(testing::failure<Error>([&] { pool.at(refused, 3); }),
              "rank 3: the request is not outstanding: it was withdrawn or already waited for");
}

TEST(SlotPool, GrowsWithoutMovingAndDrainsWhatIsOutstanding) {
  SlotPool<int> pool;
  std::vector<Request> requests(1000);
  std::vector<int*> slots;
  for (int i = 0; i < 1000; ++i) {
    slots.push_back(&pool.take(requests[i]));
    *slots.back() = i;
  }
  EXPECT_EQ(std::set<int*>(slots.begin(), slots.end()).size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(pool.find(requests[i]), slots[i]);
  for (int i = 0; i < 1000; i += 2) pool.give_back(requests[i]);
  int drained = 0, sum = 0;
  pool.drain([&](int slot) { ++drained, sum += slot; });
  EXPECT_EQ(drained, 500);
  EXPECT_EQ(sum, 250000);  // 1 + 3 + ... + 999
  for (int i = 1; i < 1000; i += 2) EXPECT_EQ(pool.find(requests[i]), nullptr);
}

}  // namespace
}  // namespace plumbline::transport
