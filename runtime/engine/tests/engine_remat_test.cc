// Partitioned stages on the engine, compared bitwise with plain autograd over the whole module.
#include <algorithm>

#include "runtime/engine/testing/engine_test_models.h"
#include "runtime/engine/testing/halved_schedules.h"
#include "runtime/testing/in_full.h"
#include "runtime/testing/parameter_name.h"
#include "runtime/testing/refusal.h"

namespace plumbline::testing {
namespace {

constexpr int kRematMicrobatches = 4;
constexpr const char* kModes[] = {"default", "min-cut", "aggressive", "bytes", "budget=0.5", "budget=0"};

std::function<void(engine::EngineOptions&)> rematerialised(const std::string& mode,
                                                           const std::string& policy = "torch-2.15") {
  return [=](engine::EngineOptions& options) { options.remat = {mode, policy}; };
}

std::vector<int> numbers_of_ranks() { return in_full() ? std::vector{1, 2, 4} : std::vector{2}; }

class EveryKindPartitioned : public ::testing::TestWithParam<const char*> {};

/// Uneven micro-batches, so that two shapes are in flight at a time; two steps.
TEST_P(EveryKindPartitioned, EqualsAutogradInEveryMode) {
  const std::string kind = GetParam();
  for (const char* mode : kModes) {
    SCOPED_TRACE(mode);
    const auto change = [&](engine::EngineOptions& options) {
      options.remat.mode = mode;
      options.keep_strides = kind == "strided";
    };
    for (const int ranks : numbers_of_ranks()) {
      expect_like_oracle(kind, schedule::make_schedule("1f1b", ranks, kRematMicrobatches), 2 * kRematMicrobatches + 1,
                         2, change);
      if (HasFatalFailure()) return;
    }
    expect_like_oracle(kind, schedule::make_schedule("gpipe", 2, kRematMicrobatches), 2 * kRematMicrobatches, 1,
                       change);
    if (HasFatalFailure()) return;
  }
}

TEST_P(EveryKindPartitioned, EqualsAutogradInHalves) {
  const std::string kind = GetParam();
  for (const char* mode : {"default", "min-cut", "bytes", "budget=0"})
    for (const int ranks : numbers_of_ranks())
      for (const schedule::Schedule& schedule :
           {halved(schedule::make_schedule("1f1b", ranks, kRematMicrobatches), {.name = "all W last"}),
            halved(schedule::make_schedule("1f1b", ranks, kRematMicrobatches),
                   {.name = "mixed", .lag = [](int) { return 1; }, .whole_microbatches = {1}})}) {
        SCOPED_TRACE(mode);
        expect_like_oracle(kind, schedule, 2 * kRematMicrobatches + 1, 1, [&](engine::EngineOptions& options) {
          options.remat.mode = mode;
          options.keep_strides = kind == "strided";
        });
        if (HasFatalFailure()) return;
      }
}

INSTANTIATE_TEST_SUITE_P(Engine, EveryKindPartitioned,
                         ::testing::Values("mlp", "skip", "tied", "dropout", "batch norm", "two outputs", "integers",
                                           "frozen", "frozen early", "unused", "strided"),
                         testing::ParameterName());

TEST(EngineRemat, EveryPolicyGivesTheSameBits) {
  for (const char* policy : {"seed", "torch-2.11", "torch-2.15"})
    for (const char* mode : {"min-cut", "aggressive"})
      expect_like_oracle("batch norm", schedule::make_schedule("1f1b", 2, kRematMicrobatches), 2 * kRematMicrobatches,
                         1, rematerialised(mode, policy));
}

TEST(EngineRemat, ReplicasAddUpTheSameBits) {
  const schedule::Schedule schedule = schedule::make_schedule("chimera", 4, kRematMicrobatches);
  ASSERT_GT(schedule.replicas(), 1);
  // Replicas of a stage draw for other micro-batches, and draw again in their backwards.
  for (const char* kind : {"mlp", "dropout"})
    for (const char* mode : {"bytes", "budget=0"})
      expect_like_oracle(kind, schedule, 2 * kRematMicrobatches, 2, rematerialised(mode));
}

TEST(EngineRemat, AnEvaluationBetweenStepsChangesNothing) {
  for (const std::string kind : {"batch norm", "dropout"}) {
    const at::Tensor x1 = batch_of(kind, 8), x2 = batch_of(kind, 8, 3.3), target = target_of(kind, 8);
    Oracle oracle(kind, 2, kRematMicrobatches);
    const Told first = oracle.train(x1, target), evaluated = oracle.evaluate(x2, target),
               second = oracle.train(x2, target);
    Fleet fleet(kind, schedule::make_schedule("1f1b", 2, kRematMicrobatches));
    fleet.options.remat.mode = "min-cut";
    Told ours_first, ours_evaluated, ours_second;
    fleet.run([&](engine::Engine& engine, int) {
      fleet.tell(ours_first, engine, engine.train({x1}, target));
      fleet.tell(ours_evaluated, engine, engine.evaluate({x2}, target));
      fleet.tell(ours_second, engine, engine.train({x2}, target));
    });
    expect_same(ours_first, first);
    expect_same(ours_evaluated.outputs, evaluated.outputs, "evaluation output");
    expect_same(ours_second, second);
  }
}

TEST(EngineRemat, RanksThatChoseDifferentlyAreRefused) {
  Fleet fleet("mlp", schedule::make_schedule("chimera", 2, kRematMicrobatches));
  fleet.adjust = [](engine::EngineOptions& options, int rank) {
    options.remat.mode = rank == 0 ? "default" : "budget=0";
  };
  const std::string text = failure([&] {
    fleet.run([&](engine::Engine& engine, int) { engine.train({batch_of("mlp", 8)}, target_of("mlp", 8)); });
  });
  expect_part(text, "stage 0 is partitioned in two ways: ");
  expect_part(text, " on rank 0, ");
  expect_part(text, " on rank 1; every rank must hold the same model");
}

TEST(EngineRemat, RanksOfOneStageThatDoNotAllPartitionAreRefusedAtOnce) {
  for (const int partitioning : {0, 1}) {
    Fleet fleet("mlp", schedule::make_schedule("chimera", 2, kRematMicrobatches));
    fleet.adjust = [&](engine::EngineOptions& options, int rank) {
      options.remat.mode = rank == partitioning ? "bytes" : "";
    };
    const std::string text = failure([&] {
      fleet.run([&](engine::Engine& engine, int) { engine.train({batch_of("mlp", 8)}, target_of("mlp", 8)); });
    });
    expect_part(text, "stage 0 is partitioned in two ways: ");
    expect_part(text, "none on rank " + std::to_string(1 - partitioning));
  }
}

TEST(EngineRemat, OneRankMayPartitionAndAnotherNot) {
  const schedule::Schedule schedule = schedule::make_schedule("1f1b", 2, kRematMicrobatches);
  Oracle oracle("mlp", 2, kRematMicrobatches);
  oracle.follow(schedule);
  Fleet fleet("mlp", schedule);
  fleet.adjust = [](engine::EngineOptions& options, int rank) { options.remat.mode = rank == 0 ? "bytes" : ""; };
  const at::Tensor x = batch_of("mlp", 8), target = target_of("mlp", 8);
  expect_same(fleet.train(x, target), oracle.train(x, target));
}

/// Layers 0 and 2 are frozen at first. In each step other parameters require a gradient; one choice repeats.
TEST(EngineRemat, ParametersMayBeFrozenAndUnfrozenBetweenSteps) {
  const auto set = [](Net& net, int step) {
    const auto [layer, wants] =
        std::vector<std::pair<int, bool>>{{0, false}, {0, true}, {2, true}, {3, false}, {3, true}}[step];
    net.layers[layer]->weight.requires_grad_(wants);
    net.layers[layer]->bias.requires_grad_(wants);
  };
  for (const char* mode : {"", "default", "bytes"}) {
    SCOPED_TRACE(mode);
    const schedule::Schedule schedule = schedule::make_schedule("1f1b", 2, kRematMicrobatches);
    Oracle oracle("frozen", 2, kRematMicrobatches);
    oracle.follow(schedule);
    Fleet fleet("frozen", schedule);
    fleet.options.remat.mode = mode;
    constexpr int kSteps = 5;
    const at::Tensor x = batch_of("frozen", 8), target = target_of("frozen", 8);
    std::vector<Told> ours(kSteps);
    fleet.run([&](engine::Engine& engine, int rank) {
      for (int step = 0; step < kSteps; ++step) {
        set(*fleet.nets[rank], step);
        fleet.tell(ours[step], engine, engine.train({x}, target));
      }
    });
    for (int step = 0; step < kSteps; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      set(*oracle.net, step);
      expect_same(ours[step], oracle.train(x, target));
    }
  }
}

/// At the split nothing in the first stage required a gradient, so none is sent back to it.
TEST(EngineRemat, AParameterThatNoGradientCanReachIsRefused) {
  for (const char* mode : {"", "default"}) {
    Fleet fleet("frozen early", schedule::make_schedule("1f1b", 4, kRematMicrobatches));
    fleet.options.remat.mode = mode;
    const std::string text = failure([&] {
      fleet.run([&](engine::Engine& engine, int rank) {
        engine.train({batch_of("frozen early", 8)}, target_of("frozen early", 8));
        fleet.nets[rank]->layers[0]->weight.requires_grad_(true);
        engine.train({batch_of("frozen early", 8)}, target_of("frozen early", 8));
      });
    });
    expect_part(text, "stage 0");
    expect_part(text, "needed no gradient when the stages were cut, and needs one now that other parameters require");
  }
}

TEST(EngineRemat, WhatDoesNotExistIsRefused) {
  const auto refusal_of = [](const engine::RematOptions& remat,
                             engine::Recompute recompute = engine::Recompute::Never) {
    Fleet fleet("mlp", schedule::make_schedule("1f1b", 1, kRematMicrobatches));
    fleet.options.remat = remat;
    fleet.options.recompute.policy = recompute;
    return refusal([&] { fleet.run([](engine::Engine&, int) {}); });
  };
  expect_part(refusal_of({"everything"}), "everything");
  expect_part(refusal_of({"bytes", "torch-1"}), "torch-1");
  expect_part(refusal_of({"bytes"}, engine::Recompute::Always),
              "--remat and --recompute: a stage is either partitioned or run again as a whole; take one");
}

}  // namespace
}  // namespace plumbline::testing
