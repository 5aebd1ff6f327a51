#include "runtime/transport/nccl/route.h"

#include <gtest/gtest.h>

#include "runtime/transport/threads/threads.h"

namespace plumbline::transport::nccl {
namespace {

TEST(NcclRoute, FindsMessagesByTag) {
  const Route route({{1, 30, 8}, {1, 10, 4}, {1, 20, 0}});
  EXPECT_EQ(route.size(), 3u);
  EXPECT_EQ(route.find(30), 0u);
  EXPECT_EQ(route.find(10), 1u);
  EXPECT_EQ(route.find(20), 2u);
  EXPECT_EQ(route.find(15), std::nullopt);
  EXPECT_EQ(route.find(31), std::nullopt);
  EXPECT_EQ(Route().find(0), std::nullopt);
}

TEST(NcclRoute, EveryRankGetsTheTrafficOfAll) {
  const std::vector<Traffic> expected = {{{{1, 7, 100}, {2, 8, size_t{3} << 32}}, {}}, {{}, {{0, 7, 100}}}, {}};
  run_thread_ranks(3, [&](Transport& transport) {
    const auto all = gather_traffic(transport, expected[transport.rank()], Deadline::after(std::chrono::seconds(20)));
    ASSERT_EQ(all.size(), 3u);
    for (size_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(all[rank].sends, expected[rank].sends);
      EXPECT_EQ(all[rank].receives, expected[rank].receives);
    }
  });
}

}  // namespace
}  // namespace plumbline::transport::nccl
