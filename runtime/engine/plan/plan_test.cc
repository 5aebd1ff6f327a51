#include "runtime/engine/plan/plan.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "runtime/engine/plan/agreement.h"
#include "runtime/engine/plan/plan_cache.h"
#include "runtime/engine/plan/shape_agreement.h"
#include "runtime/engine/plan/shape_key.h"
#include "runtime/engine/stage/emulated_stage.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/testing/refusal.h"
#include "runtime/testing/spawn.h"

namespace plumbline::engine {
namespace {

transport::Deadline soon() { return transport::Deadline::after(std::chrono::seconds(20)); }

/// The error of two ranks, of which rank 1 changes its plan for two stages.
std::string disagreement(const std::function<void(Plan&)>& change) {
  return testing::failure([&] {
    testing::with_ranks(2, [&](transport::Transport& transport) {
      const std::vector<at::Tensor> inputs{at::zeros({2, 3})};
      Plan plan = make_plan(emulated_pipe(2), true, {inputs, inputs});
      split::Boundary& boundary = plan.pipes[0].boundaries[0];
      boundary.name = "random state";
      if (transport.rank() == 1) change(plan);
      check_with_peers(plan, transport, soon());
    });
  });
}

TEST(Plan, RanksThatDisagreeAreToldAboutWhat) {
  const auto boundary = [](Plan& plan) -> split::Boundary& { return plan.pipes[0].boundaries[0]; };
  EXPECT_EQ(disagreement([](Plan&) {}), "accepted");
  testing::expect_part(disagreement([&](Plan& plan) { boundary(plan).value.sizes = {4, 3}; }),
                       "shapes disagree before the first message: stage 0, micro-batch 0, value 'random state': "
                       "rank 0 has f32[2,3]*, rank 1 has f32[4,3]*");
  testing::expect_part(disagreement([&](Plan& plan) { boundary(plan).name = "random"; }),
                       "stage 0, micro-batch 0, value 'random state' on rank 0 is stage 0, micro-batch 0, value "
                       "'random' on rank 1: their models are cut differently");
  testing::expect_part(disagreement([](Plan& plan) { plan.pipes[0].boundaries.clear(); }),
                       "rank 0 has 2 boundary values, rank 1 has 0: their models are cut differently");
}

TEST(PlanCache, EvictsThePlanThatWasUsedLeastRecently) {
  testing::with_ranks(1, [](transport::Transport& transport) {
    EngineContext context{transport, schedule::make_schedule("gpipe", 1, 1), {}, {0}, {}, {}};
    std::vector<int64_t> captured;  // rows of the inputs
    const PipeSource source = [&](bool training, const std::vector<at::Tensor>& inputs) {
      captured.push_back(inputs[0].size(0));
      return emulated_pipe(1)(training, inputs);
    };
    PlanCache plans(context, source);
    const auto use = [&](int64_t rows) { plans.plan_for(false, {{at::zeros({rows, 3})}}); };
    std::vector<int64_t> all(PlanCache::kMaxPlans);
    std::iota(all.begin(), all.end(), 1);
    for (int round = 0; round < 2; ++round) std::ranges::for_each(all, use);
    EXPECT_EQ(captured, all) << "every plan is kept";
    captured.clear();
    use(1);
    use(1000);
    use(1);
    use(3);
    EXPECT_EQ(captured, std::vector<int64_t>{1000});
    use(2);
    EXPECT_EQ(captured, (std::vector<int64_t>{1000, 2})) << "its plan was the oldest";
  });
}

TEST(Agreement, TextsOfAnyContentArriveAsTheyWere) {
  const Beliefs texts{"", "two words", std::string("\0\n", 2), "", "last"};
  testing::with_ranks(3, [&](transport::Transport& transport) {
    Beliefs mine = texts;
    mine.push_back(std::to_string(transport.rank()));
    require_agreement(mine, transport, soon(), [&](std::span<const Beliefs> of_rank) {
      for (size_t rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(of_rank[rank].back(), std::to_string(rank));
        EXPECT_EQ(Beliefs(of_rank[rank].begin(), of_rank[rank].end() - 1), texts);
      }
      return std::string();
    });
    EXPECT_EQ(testing::failure([&] {
                require_agreement({}, transport, soon(), [](std::span<const Beliefs>) { return std::string("no"); });
              }),
              "no");
  });
}

TEST(ShapeKey, DiffersWhereShapesDiffer) {
  const auto key_of = [](const std::vector<at::Tensor>& tensors) {
    ShapeKey key;
    append_shapes(tensors, key);
    return key;
  };
  const at::Tensor x = at::zeros({2, 3});
  const std::vector<std::vector<at::Tensor>> lists = {
      {},
      {x},
      {x, x},
      {at::Tensor(), x},
      {x, at::Tensor()},
      {x.t()},
      {at::zeros({6})},
      {at::zeros({2, 3, 1})},
      {at::zeros({})},
      {x.to(at::kDouble)},
      {at::zeros({2, 3}).requires_grad_(true)},
  };
  for (size_t i = 0; i < lists.size(); ++i)
    for (size_t j = 0; j < lists.size(); ++j) EXPECT_EQ(key_of(lists[i]) == key_of(lists[j]), i == j) << i << " " << j;
  EXPECT_EQ(key_of({x}), key_of({at::ones({2, 3})}));
}

}  // namespace
}  // namespace plumbline::engine
