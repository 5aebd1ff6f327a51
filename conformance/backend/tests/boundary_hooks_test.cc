// Hooks on values between stages where a stage's outputs do not depend on what it receives: no case of the corpus has
// both. INTERPRETING.md, "None or zeros", says what is expected.
#include <ATen/ops/count_nonzero.h>
#include <gtest/gtest.h>

#include <mutex>

#include "conformance/backend/engine_subject.h"
#include "conformance/corpus/corpus.h"
#include "conformance/judge/stage_orders.h"
#include "reference/oracle/detached_run.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/testing/spawn.h"

namespace plumbline::conformance {
namespace {

constexpr uint64_t kSeed = 3;
constexpr int kPipelineRanks = 2;

/// Expects one call wherever the gradient is not zeros, and none where it is. Returns the number of the latter.
int expect_calls(const reference::Results& results) {
  int without_call = 0;
  for (const auto& [text, grad] : results) {
    reference::ResultKey key = reference::parse_result_key(text);
    if (key.kind != reference::ResultKind::Backward) continue;
    key.kind = reference::ResultKind::HookCalls;
    const auto calls = results.find(reference::to_string(key));
    if (calls == results.end()) {
      ADD_FAILURE() << reference::to_string(key) << " is missing";
      continue;
    }
    const bool zeros = at::count_nonzero(grad).item<int64_t>() == 0;
    EXPECT_EQ(calls->second.item<int64_t>(), zeros ? 0 : 1) << calls->first;
    without_call += zeros;
  }
  return without_call;
}

TEST(BoundaryHooks, AreNotCalledWhereTheGradientIsZeros) {
  reference::Case c = find_case("exact-multi-io");
  c.boundary_hooks = true;
  for (const char* name : {"interleaved-1f1b", "interleaved-zero-bubble", "zb-v"}) {
    const schedule::Schedule schedule = schedule::make_schedule(name, kPipelineRanks, c.microbatches);
    EXPECT_GT(expect_calls(reference::run_detached(c, kSeed, stage_orders(schedule))), 0) << name;
    reference::Results results;
    std::mutex mutex;
    testing::with_ranks(kPipelineRanks, [&](transport::Transport& transport) {
      reference::Results mine = run_case_on_rank(c, transport, {.schedule = schedule, .seed = kSeed});
      const std::lock_guard<std::mutex> lock(mutex);
      results.merge(mine);
    });
    EXPECT_GT(expect_calls(results), 0) << name;
  }
}

}  // namespace
}  // namespace plumbline::conformance
