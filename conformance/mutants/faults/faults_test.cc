// The faults that several mutants share: what they change, whose state they keep, and what they count as a change.
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "conformance/mutants/faults/batch_fault.h"
#include "conformance/mutants/faults/pipe_fault.h"

namespace plumbline::conformance {
namespace {

models::Batch batch_of(double number) { return {.inputs = {at::full({1}, number)}, .targets = {}}; }

class Faults : public ::testing::Test {
 protected:
  const reference::Case case_;
  const schedule::Schedule schedule_;
  std::atomic<int64_t> happened_{0};
  const FaultSite site_{case_, schedule_, /*seed=*/0, /*rank=*/0, happened_};
};

/// Keeps the numbers of the batches that it gets.
class Given : public reference::CaseSubject {
 public:
  void train(int, const models::Batch& batch) override { trained.push_back(batch.inputs[0].item<double>()); }
  void evaluate(int, const models::Batch& batch) override { evaluated.push_back(batch.inputs[0].item<double>()); }
  void zero_grad() override {}
  void set_trainable(const std::string&, bool) override {}
  reference::NamedTensors parameters() const override { return {}; }
  reference::NamedTensors buffers() const override { return {}; }
  double gradient_norm(reference::NormKind) const override { return 0; }

  std::vector<double> trained, evaluated;
};

TEST_F(Faults, InBatchesKeepTheStateOfTrainingsApartFromThatOfEvaluations) {
  const Fault fault = batch_fault(site_, [calls = 0](const Specs& specs, models::Batch& batch) mutable {
    EXPECT_EQ(specs.at(0).dim, 3);
    if (++calls == 1) return false;
    batch = batch_of(batch.inputs[0].item<double>() + 10 * calls);
    return true;
  });
  engine::EngineOptions options;
  options.input_chunks = {{.dim = 3}};
  fault.options(options);
  for (int rank = 0; rank < 2; ++rank) {
    Given given;
    const auto subject = fault.steps(given);
    for (int step = 0; step < 3; ++step) subject->train(step, batch_of(step));
    for (int step = 3; step < 5; ++step) subject->evaluate(step, batch_of(step));
    EXPECT_EQ(given.trained, (std::vector<double>{0, 1 + 20, 2 + 30}));
    EXPECT_EQ(given.evaluated, (std::vector<double>{3, 4 + 20}));
  }
  EXPECT_EQ(happened_, 6);
}

TEST_F(Faults, InBatchesCompareInputsAndTargets) {
  models::Batch batch = batch_of(1);
  batch.targets = at::full({1}, 2);
  models::Batch other = batch_of(1);
  EXPECT_FALSE(same_batch(batch, other)) << "no target";
  other.targets = at::full({1}, 2);
  EXPECT_TRUE(same_batch(batch, other));
  other.inputs[0] = at::full({1}, 3.0);
  EXPECT_FALSE(same_batch(batch, other));
  other.inputs = {batch.inputs[0], batch.inputs[0]};
  EXPECT_FALSE(same_batch(batch, other)) << "one input more";
}

TEST_F(Faults, InPipesKeepTheStateOfAnEngine) {
  std::vector<bool> trainings;
  const Fault fault = pipe_fault([&, calls = 0](bool training, split::Pipe& pipe) mutable {
    trainings.push_back(training);
    pipe.boundaries.resize(++calls);
  });
  const engine::PipeSource source = [](bool, const std::vector<at::Tensor>&) { return split::Pipe(); };
  const engine::PipeSource first = fault.pipes(source), second = fault.pipes(source);
  EXPECT_EQ(first(true, {}).boundaries.size(), 1u);
  EXPECT_EQ(first(false, {}).boundaries.size(), 2u);
  EXPECT_EQ(second(true, {}).boundaries.size(), 1u);
  EXPECT_EQ(trainings, (std::vector<bool>{true, false, true}));
}

TEST_F(Faults, InPipesGiveEvaluationsThePipesOfTraining) {
  std::vector<bool> trainings;
  const engine::PipeSource changed =
      evaluates_as_training(site_).pipes([&trainings](bool training, const std::vector<at::Tensor>&) {
        trainings.push_back(training);
        return split::Pipe();
      });
  changed(true, {});
  EXPECT_EQ(happened_, 0);
  changed(false, {});
  EXPECT_EQ(happened_, 1);
  EXPECT_EQ(trainings, (std::vector<bool>{true, true}));
}

}  // namespace
}  // namespace plumbline::conformance
