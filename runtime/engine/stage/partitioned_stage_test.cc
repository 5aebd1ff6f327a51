#include "runtime/engine/stage/partitioned_stage.h"

#include "runtime/partition/testing/trace_testing.h"
#include "runtime/testing/refusal.h"
#include "runtime/testing/spawn.h"

namespace plumbline::engine {
namespace {

using M = partition::TracedModule;

TEST(PartitionedStage, IsMadeOnceForEachLayoutAndEachChoiceOfParameters) {
  const auto module = partition::module_of([](M& m) {
    const at::Tensor w = m.parameter("w", {4, 4}), b = m.parameter("b", {4});
    m.body = [=](const partition::Tensors& in) { return partition::Tensors{at::linear(in[0], w, b)}; };
  });
  const at::Tensor x = at::rand({4, 4}), twice = at::rand({4, 8}).narrow(1, 0, 4);
  const graph::Graph graph = partition::capture_of(*module, module->body, {x});
  PartitionedStage stage(0, {&graph}, {{1}}, {"default"});
  const auto partition_of = [&](const at::Tensor& input) { return stage.of(0, partition::Tensors{input}); };
  partition::PartitionedGraph* const first = partition_of(x);
  EXPECT_NE(partition_of(x.t()), first);
  EXPECT_NE(partition_of(twice), first);
  EXPECT_NE(partition_of(twice), partition_of(x.t()));
  const at::Tensor b = module->named_parameters()["b"];
  b.requires_grad_(false);
  partition::PartitionedGraph* const frozen = partition_of(x);
  EXPECT_NE(frozen, first);
  module->named_parameters()["w"].requires_grad_(false);
  EXPECT_EQ(partition_of(x), nullptr) << "nothing to differentiate";
  module->named_parameters()["w"].requires_grad_(true);
  EXPECT_EQ(partition_of(x), frozen);
  b.requires_grad_(true);
  EXPECT_EQ(partition_of(at::rand({4, 4})), first);
  EXPECT_EQ(partition_of(at::rand({4, 4}).t()), partition_of(x.t()));
}

/// One more layout than can be kept, repeatedly: each is made again and still gives the bits of eager mode.
TEST(PartitionedStage, KeepsABoundedNumberOfPartitions) {
  const auto module = partition::module_of([](M& m) {
    const at::Tensor w = m.parameter("w", {4, 4});
    m.body = [=](const partition::Tensors& in) { return partition::Tensors{at::linear(in[0], w).sin()}; };
  });
  const at::Tensor x = at::rand({3, 4}), w = module->parameters()[0];
  const graph::Graph graph = partition::capture_of(*module, module->body, {x});
  PartitionedStage stage(0, {&graph}, {{1}}, {"min-cut"});
  const std::vector<std::string> choices = stage.choices();
  const int64_t layouts = PartitionedStage::kMaxPartitions + 1;
  for (int round = 0; round < 2; ++round) {
    at::Tensor pending;  // a forward whose partition is evicted before its backward
    for (int64_t gap = 0; gap < layouts; ++gap) {
      const at::Tensor input = gap == 0 ? x : at::rand({3, 4 + gap}).narrow(1, 0, 4);
      partition::Tensors outputs;
      stage.of(0, partition::Tensors{input})->run(partition::Tensors{input}, outputs);
      EXPECT_TRUE(partition::bitwise_equal(outputs[0], module->body({input})[0])) << gap;
      EXPECT_LE(stage.kept(0), PartitionedStage::kMaxPartitions);
      if (gap == 0) pending = outputs[0];
    }
    EXPECT_EQ(stage.kept(0), PartitionedStage::kMaxPartitions);
    w.mutable_grad() = at::Tensor();
    pending.sum().backward();
    const at::Tensor made = w.grad().clone();
    w.mutable_grad() = at::Tensor();
    module->body({x})[0].sum().backward();
    EXPECT_TRUE(partition::bitwise_equal(made, w.grad()));
  }
  EXPECT_EQ(stage.choices(), choices);
}

TEST(PartitionedStage, RanksThatChoseDifferentlyAreRefused) {
  const auto chosen_by = [](const std::string& of_last) {
    return testing::failure([&] {
      testing::with_ranks(3, [&](transport::Transport& transport) {
        std::map<int, std::vector<std::string>> choices;
        choices[0] = {"none"};
        if (transport.rank() > 0) choices[1] = {"a choice\nof two lines", transport.rank() == 2 ? of_last : "none"};
        check_same_choices(choices, transport, transport::Deadline::after(std::chrono::seconds(20)));
      });
    });
  };
  EXPECT_EQ(chosen_by("none"), "accepted");
  testing::expect_part(chosen_by("other"),
                       "stage 1 is partitioned in two ways: none on rank 1, other on rank 2; every rank must hold");
}

}  // namespace
}  // namespace plumbline::engine
