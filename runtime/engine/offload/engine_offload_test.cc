// OFFLOAD and RELOAD on the engine: the same bits as plain autograd, and memory that really falls.
#include <algorithm>
#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "runtime/engine/testing/engine_test_models.h"
#include "runtime/engine/testing/halved_schedules.h"
#include "runtime/engine/testing/offloaded_schedules.h"
#include "runtime/error.h"
#include "runtime/schedule/check/check.h"
#include "runtime/testing/counted_memory.h"
#include "runtime/testing/parameter_name.h"
#include "runtime/testing/refusal.h"

namespace plumbline::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kMicrobatches = 4;

class EveryKindOffloaded : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryKindOffloaded, EqualsAutograd) {
  const std::string kind = GetParam();
  const auto strides = [&](engine::EngineOptions& options) { options.keep_strides = kind == "strided"; };
  for (const char* name : {"gpipe", "1f1b"})
    for (const int ranks : {1, 2, 4}) {
      expect_like_oracle(kind, offloaded(schedule::make_schedule(name, ranks, kMicrobatches)), 2 * kMicrobatches + 1, 2,
                         strides);
      if (HasFatalFailure()) return;
    }
}

TEST_P(EveryKindOffloaded, EqualsAutogradAtRandomPlaces) {
  const std::string kind = GetParam();
  std::mt19937 random(7);
  for (int seed = 0; seed < 6; ++seed) {
    schedule::Schedule schedule = schedule::make_schedule("1f1b", 1 + seed % 3, kMicrobatches);
    if (seed % 2 == 1) schedule = halved(schedule, {.name = "halved", .lag = [](int) { return 1; }});
    SCOPED_TRACE("seed " + std::to_string(seed));
    schedule = offloaded_at_random(schedule, random);
    schedule::require_valid(schedule, schedule::chain_edges(schedule.stages));
    expect_like_oracle(kind, schedule, 2 * kMicrobatches, 2,
                       [&](engine::EngineOptions& options) { options.keep_strides = kind == "strided"; });
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Engine, EveryKindOffloaded,
                         ::testing::Values("mlp", "skip", "tied", "dropout", "batch norm", "two outputs", "integers",
                                           "frozen", "frozen early", "unused", "strided"),
                         testing::ParameterName());

TEST(EngineOffload, WithRecomputationAndPartitionedStages) {
  const std::function<void(engine::EngineOptions&)> changes[] = {
      [](engine::EngineOptions& options) { options.recompute.policy = engine::Recompute::Always; },
      [](engine::EngineOptions& options) { options.recompute.policy = engine::Recompute::ExceptLast; },
      [](engine::EngineOptions& options) { options.remat.mode = "min-cut"; },
      [](engine::EngineOptions& options) { options.remat.mode = "budget=0"; },
      [](engine::EngineOptions& options) { options.release_outputs = false; },
  };
  std::mt19937 random(3);
  for (const std::string kind : {"mlp", "dropout", "batch norm"})
    for (size_t i = 0; i < std::size(changes); ++i) {
      SCOPED_TRACE("change " + std::to_string(i));
      const schedule::Schedule whole = schedule::make_schedule("1f1b", 2, kMicrobatches);
      expect_like_oracle(kind, offloaded(whole), 2 * kMicrobatches + 1, 2, changes[i]);
      expect_like_oracle(kind, offloaded_at_random(halved(whole, {.name = "halved"}), random), 2 * kMicrobatches, 1,
                         changes[i]);
      if (::testing::Test::HasFatalFailure()) return;
    }
}

TEST(EngineOffload, TwoStagesARankReplicasAndGroups) {
  for (const char* name : {"interleaved-1f1b", "zb-v", "dualpipe-v"})
    expect_like_oracle("skip", offloaded(schedule::make_schedule(name, 2, kMicrobatches)), 2 * kMicrobatches, 2);
  for (const char* name : {"chimera", "dualpipe"})
    expect_like_oracle("mlp", offloaded(schedule::make_schedule(name, 2, kMicrobatches)), 2 * kMicrobatches, 2);
}

TEST(EngineOffload, AnEvaluationOffloadsNothing) {
  const at::Tensor x = batch_of("mlp", 8), target = target_of("mlp", 8);
  Oracle oracle("mlp", 2, kMicrobatches);
  const Told expected = oracle.evaluate(x, target);
  Fleet fleet("mlp", offloaded(schedule::make_schedule("1f1b", 2, kMicrobatches)));
  fleet.options.store = []() -> std::unique_ptr<engine::ActivationStore> {
    ADD_FAILURE() << "an evaluation needs no store";
    return engine::file_store();
  };
  Told ours;
  fleet.run([&](engine::Engine& engine, int) { fleet.tell(ours, engine, engine.evaluate({x}, target)); });
  ASSERT_EQ(ours.outputs.size(), 1u);
  EXPECT_TRUE(at::equal(ours.outputs[0], expected.outputs[0]));
  for (int m = 0; m < kMicrobatches; ++m) EXPECT_TRUE(at::equal(ours.losses[m], expected.losses[m])) << m;
}

/// Passes everything on to a file, and counts.
struct CountingStore : engine::ActivationStore {
  explicit CountingStore(std::atomic<int64_t>& bytes) : bytes(bytes) {}
  void write(const engine::StoredBlock& block, const at::Tensor& content) override {
    inner->write(block, content);
    bytes += content.numel();
    seen.insert(content.const_data_ptr());
  }
  at::Tensor read(const engine::StoredBlock& block) override { return inner->read(block); }
  void drop(const engine::StoredBlock& block) override { inner->drop(block); }

  std::unique_ptr<engine::ActivationStore> inner = engine::file_store();
  std::atomic<int64_t>& bytes;
  std::set<const void*> seen;
};

/// Tensors' bytes at the first backward of gpipe on `ranks` ranks, of all ranks together: all forwards have ended, and
/// the transfers of all OFFLOAD as well.
int64_t bytes_at_first_backward(const std::string& kind, int ranks, const std::function<bool(int, int)>& which,
                                int64_t expected_at_most) {
  const schedule::Schedule schedule = offloaded(schedule::make_schedule("gpipe", ranks, kMicrobatches), which);
  const at::Tensor x = batch_of(kind, 256), target = target_of(kind, 256);
  Fleet fleet(kind, schedule);
  // mse_loss() would return its mean in the memory of all elements.
  fleet.options.loss = [](const Tensors& outputs, const at::Tensor& wanted) {
    return (outputs[0] - wanted).square().mean();
  };
  int64_t found = -1;
  int64_t begin = 0;
  const CountedMemory counted;
  fleet.options.custom.of_type[schedule::ActionType::F] = [&](auto actions, engine::ActionContext& context) {
    if (actions[0].stage == 0 && actions[0].microbatch == 0) begin = CountedMemory::live;
    context.execute(actions[0]);
  };
  fleet.adjust = [&](engine::EngineOptions& options, int rank) {
    if (rank + 1 < ranks) return;
    options.custom.of_type[schedule::ActionType::B] = [&](auto actions, engine::ActionContext& context) {
      // The thread that transfers frees its last block a moment after the store has it.
      const auto deadline = std::chrono::steady_clock::now() + 60s;
      while (found < 0 && CountedMemory::live - begin > expected_at_most && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(1ms);
      if (found < 0) found = CountedMemory::live - begin;
      context.execute(actions[0]);
    };
  };
  fleet.run([&](engine::Engine& engine, int) { engine.train({x}, target); });
  return found;
}

/// One rank, so that the batch is the user's and nothing is sent: after the forwards only the user's results are left.
TEST(EngineOffload, MemoryFallsToTheResults) {
  const int64_t results = 256 * kWidth * 4 + kMicrobatches * 4;
  const auto all_but_first = [](int, int m) { return m != 0; };  // the first is the first to go back
  for (const char* kind : {"mlp", "batch norm", "skip"}) {
    const int64_t none = bytes_at_first_backward(kind, 1, [](int, int) { return false; }, INT64_MAX);
    const int64_t of_one = (none - results) / kMicrobatches;
    EXPECT_GE(of_one, 64 * kWidth * 4 * 8) << kind << ": four layers keep at least eight values of 64 rows";
    const int64_t left = results + of_one;
    EXPECT_EQ(bytes_at_first_backward(kind, 1, all_but_first, left), left) << kind;
  }
}

/// What autograd keeps in one memory is moved once, parameters and the batch never.
TEST(EngineOffload, NothingTwiceAndNoParameters) {
  std::atomic<int64_t> bytes = 0;
  Fleet fleet("mlp", offloaded(schedule::make_schedule("gpipe", 1, 1)));
  fleet.options.store = [&] { return std::make_unique<CountingStore>(bytes); };
  const at::Tensor x = batch_of("mlp", 64), target = target_of("mlp", 64);
  fleet.train(x, target);
  // Four layers: each gelu keeps its input; each linear but the first, which keeps the batch, keeps the gelu's result
  // before it. The loss keeps the target and the last result, both the user's.
  EXPECT_EQ(bytes, 7 * 64 * kWidth * 4) << "more are a second copy, a parameter or the batch";
}

TEST(EngineOffload, ErrorsOfTheStoreAreTheStepsErrors) {
  struct Full : engine::ActivationStore {
    void write(const engine::StoredBlock&, const at::Tensor&) override { throw Error("the disk is full"); }
    at::Tensor read(const engine::StoredBlock&) override { throw Error("nothing was stored"); }
    void drop(const engine::StoredBlock&) override {}
  };
  bool full = true;
  Fleet fleet("mlp", offloaded(schedule::make_schedule("gpipe", 1, 2)));
  fleet.options.store = [&]() -> std::unique_ptr<engine::ActivationStore> {
    return full ? std::make_unique<Full>() : engine::file_store();
  };
  const at::Tensor x = batch_of("mlp", 8), target = target_of("mlp", 8);
  Oracle oracle("mlp", 1, 2);
  const Told expected = oracle.train(x, target);
  Told ours;
  fleet.run([&](engine::Engine& engine, int) {
    EXPECT_NE(failure<Error>([&] { engine.train({x}, target); }).find("the disk is full"), std::string::npos);
    full = false;
    fleet.tell(ours, engine, engine.train({x}, target));
  });
  expect_same(ours, expected);
}

TEST(EngineOffload, AStoreThatHangsIsATimeout) {
  struct Slow : engine::ActivationStore {
    explicit Slow(std::shared_ptr<std::atomic<bool>> go) : go(std::move(go)) {}
    void write(const engine::StoredBlock& block, const at::Tensor& bytes) override { inner->write(block, bytes); }
    at::Tensor read(const engine::StoredBlock& block) override {
      go->wait(false);
      return inner->read(block);
    }
    void drop(const engine::StoredBlock& block) override { inner->drop(block); }
    std::shared_ptr<std::atomic<bool>> go;
    std::unique_ptr<engine::ActivationStore> inner = engine::file_store();
  };
  const auto go = std::make_shared<std::atomic<bool>>(false);
  Fleet fleet("mlp", offloaded(schedule::make_schedule("gpipe", 1, 1)));
  fleet.options.timeout = 100ms;
  fleet.options.store = [&go] { return std::make_unique<Slow>(go); };
  fleet.run([&](engine::Engine& engine, int) {
    const std::string error = failure<Error>([&] { engine.train({batch_of("mlp", 8)}, target_of("mlp", 8)); });
    EXPECT_NE(error.find("rank 0, position 3 (0B0): stage 0, micro-batch 0: its activations"), std::string::npos)
        << error;
  });
  // The step was over while the store still hung. What the transfer uses lives until it ends, too.
  EXPECT_EQ(go.use_count(), 2);
  *go = true;
  go->notify_all();
  while (go.use_count() > 1) std::this_thread::yield();
}

TEST(EngineOffload, TransfersAreNotReplaced) {
  Fleet fleet("mlp", schedule::make_schedule("gpipe", 1, 1));
  fleet.options.custom.of_type[schedule::ActionType::OFFLOAD] = [](auto, engine::ActionContext&) {};
  EXPECT_NE(refusal([&] { fleet.run([](engine::Engine&, int) {}); }).find("OFFLOAD cannot be replaced"),
            std::string::npos);
}

}  // namespace
}  // namespace plumbline::testing
