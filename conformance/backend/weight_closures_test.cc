// The engine with layers that compute their weight gradients apart from autograd: the gradients come from the engine's
// calls of their work, and from nothing else.
#include "conformance/backend/weight_closures.h"

#include <gtest/gtest.h>

#include <mutex>

#include "conformance/backend/engine_subject.h"
#include "conformance/corpus/corpus.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/testing/spawn.h"

namespace plumbline::conformance {
namespace {

constexpr int kRanks = 2;

reference::Results results_of(const reference::Case& c, const char* name, const Fault* fault = nullptr) {
  const schedule::Schedule schedule = schedule::make_schedule(name, kRanks, c.microbatches);
  reference::Results results;
  std::mutex mutex;
  testing::with_ranks(kRanks, [&](transport::Transport& transport) {
    EngineCaseOptions options{.schedule = schedule, .seed = 3};
    options.fault = fault;
    reference::Results mine = run_case_on_rank(c, transport, options);
    const std::lock_guard<std::mutex> lock(mutex);
    results.merge(mine);
  });
  return results;
}

int64_t gradients_in(const reference::Results& results) {
  return std::ranges::count_if(results, [](const auto& item) {
    return reference::parse_result_key(item.first).kind == reference::ResultKind::Grad;
  });
}

TEST(WeightClosures, GiveTheGradientsThatAutogradGives) {
  const reference::Case& plain = find_case("exact-mlp-sum");
  reference::Case deferred = plain;
  deferred.weight_closures = true;
  for (const char* name : {"1f1b", "zb-h1", "interleaved-zero-bubble", "zb-v"}) {
    const reference::Results expected = results_of(plain, name), found = results_of(deferred, name);
    EXPECT_EQ(found.size(), expected.size()) << name;
    for (const auto& [key, tensor] : expected) {
      ASSERT_TRUE(found.contains(key)) << name << ": " << key;
      EXPECT_TRUE(at::equal(found.at(key), tensor)) << name << ": " << key;
    }
  }
}

TEST(WeightClosures, WithoutTheEnginesCallThereIsNoGradient) {
  reference::Case deferred = find_case("exact-mlp-sum");
  deferred.weight_closures = true;
  Fault fault;
  fault.options = [](engine::EngineOptions& options) { options.weight_work = nullptr; };
  EXPECT_GT(gradients_in(results_of(deferred, "1f1b")), 0);
  EXPECT_EQ(gradients_in(results_of(deferred, "1f1b", &fault)), 0);
  take_weight_work();
}

}  // namespace
}  // namespace plumbline::conformance
