#include "runtime/engine/replicas/parameter_shards.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isnan.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "runtime/testing/spawn.h"

namespace plumbline::engine {
namespace {

transport::Deadline before_the_end() { return transport::Deadline::after(std::chrono::seconds(30)); }

/// `right` is divided in words of 8 bytes. Two tensors view the memory, one from `begin_of_view` on.
void expect_gathered(int ranks, const at::Tensor& right, int64_t begin_of_view) {
  testing::with_ranks(ranks, [&](transport::Transport& transport) {
    const at::Tensor block = right.clone();
    split::StageState state;
    state.parameters["w"] = block.slice(0, begin_of_view);
    state.parameters["view"] = block.slice(0, 0, 1);
    std::vector<int> all;
    for (int rank = 0; rank < ranks; ++rank) all.push_back(rank);
    ParameterShards shards(state, {}, all, transport, 3);
    for (int round = 0; round < 3; ++round) {
      shards.shard(before_the_end());
      EXPECT_TRUE(shards.is_sharded());
      const int64_t per_word = 8 / block.element_size(), words = (block.numel() + per_word - 1) / per_word;
      const auto begin_of = [&](int64_t rank) { return std::min(block.numel(), rank * words / ranks * per_word); };
      const at::Tensor kept = block.clone();
      std::memset(kept.mutable_data_ptr(), 0xff, kept.nbytes());
      const int64_t first = begin_of(transport.rank()), last = begin_of(transport.rank() + 1);
      kept.slice(0, first, last).copy_(right.slice(0, first, last));
      EXPECT_EQ(std::memcmp(block.const_data_ptr(), kept.const_data_ptr(), block.nbytes()), 0) << block << kept;
      shards.begin_gather();
      shards.begin_gather();
      shards.finish_gather(before_the_end());
      EXPECT_TRUE(at::equal(block, right)) << "rank " << transport.rank() << " of " << ranks << ", round " << round;
    }
  });
}

TEST(ParameterShards, GatherRestoresEveryByte) {
  for (const int ranks : {1, 2, 3, 4})
    for (const int64_t size : {1, 2, 5, 64, 1001}) {
      expect_gathered(ranks, at::arange(size, at::kFloat), 0);
      if (size > 4) expect_gathered(ranks, at::arange(size, at::kDouble), 3);
    }
}

TEST(ParameterShards, MemoryOfOthersIsNotDivided) {
  testing::with_ranks(2, [](transport::Transport& transport) {
    const at::Tensor block = at::arange(8, at::kFloat), alone = at::arange(8, at::kFloat);
    split::StageState state;
    state.parameters["shared"] = block.slice(0, 0, 4);
    state.parameters["alone"] = alone;
    ParameterShards shards(state, {block.slice(0, 4)}, {0, 1}, transport, 3);
    EXPECT_TRUE(shards.divides(alone.slice(0, 2, 3)));
    EXPECT_FALSE(shards.divides(block));
    shards.shard(before_the_end());
    EXPECT_TRUE(at::equal(block, at::arange(8, at::kFloat)));
    EXPECT_EQ(at::isnan(alone).sum().item<int64_t>(), 4);
    shards.begin_gather();
    shards.shard(before_the_end());  // waits for the exchange, so that no part arrives afterwards
    EXPECT_EQ(at::isnan(alone).sum().item<int64_t>(), 4);
    shards.begin_gather();
    shards.finish_gather(before_the_end());
  });
}

TEST(ParameterShards, AParameterMayGetOtherMemoryBetweenTwoUses) {
  testing::with_ranks(2, [](transport::Transport& transport) {
    split::StageState state;
    at::Tensor& parameter = state.parameters["w"] = at::arange(8, at::kFloat);
    ParameterShards shards(state, {}, {0, 1}, transport, 3);
    shards.shard(before_the_end());
    shards.begin_gather();
    shards.finish_gather(before_the_end());
    const at::Tensor former = parameter.detach(), untouched = former.clone(), longer = at::arange(12, at::kFloat);
    parameter.set_data(longer.clone());
    shards.shard(before_the_end());
    EXPECT_TRUE(shards.divides(parameter));
    EXPECT_FALSE(shards.divides(former));
    EXPECT_TRUE(at::equal(former, untouched));
    EXPECT_TRUE(at::equal(at::isnan(parameter), at::arange(12).ge(6).eq(transport.rank() == 0))) << parameter;
    shards.begin_gather();
    shards.finish_gather(before_the_end());
    EXPECT_TRUE(at::equal(parameter, longer)) << parameter;
    EXPECT_TRUE(at::equal(former, untouched));
  });
}

}  // namespace
}  // namespace plumbline::engine
