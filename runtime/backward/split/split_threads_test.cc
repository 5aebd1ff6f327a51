// The halves on several threads: concurrent stages, concurrent micro-batches of one stage, the parts of one micro-batch
// on different threads. Also built with ThreadSanitizer (backward_threads_tsan).
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <barrier>
#include <future>

#include "runtime/backward/testing/backward_test_models.h"

namespace plumbline::backward {
namespace {

using namespace backward_test;

/// Whole numbers, small enough that every sum is exact: gradients are the same in any order of addition.
Stage exact_mlp(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const auto whole = [&](at::IntArrayRef sizes) {
    leaves.params.push_back(at::randint(-1, 2, sizes).to(dtype).requires_grad_(true));
    return leaves.params.back();
  };
  const at::Tensor w = whole({4, 4}), v = whole({4, 4}), b = whole({4});
  const auto inputs = [dtype] { return Tensors{at::randint(-2, 3, {3, 4}).to(dtype).requires_grad_(true)}; };
  return leaves.stage(
      inputs, [=](const Tensors& in) { return Tensors{at::linear(at::linear(in[0], w, b).relu() * b, v).matmul(w)}; });
}

/// The micro-batches of a stage with whole numbers as root gradients. Made on one thread: the generator is shared.
std::vector<MicroBatch> batches_of(const Stage& stage, int count) {
  std::vector<MicroBatch> batches;
  for (int m = 0; m < count; ++m) {
    batches.push_back(forward(stage, m));
    for (at::Tensor& grad : batches.back().root_grads) grad = at::randint_like(grad, -2, 3);
  }
  return batches;
}
Gradients exact_oracle(int micro_batches) {
  const Stage stage = build(exact_mlp, at::kFloat);
  Gradients made;
  for (const MicroBatch& batch : batches_of(stage, micro_batches)) {
    full_backward(batch);
    made.inputs.push_back(grads_of(batch.inputs));
  }
  made.params = grads_of(stage.params);
  return made;
}

void input_half(const MicroBatch& batch, Tensors& input_grads, WeightBackward& weights) {
  stage_backward_input(batch.outputs, batch.root_grads, batch.inputs, input_grads, weights);
}

/// Runs the calls concurrently, each on its own thread; rethrows their exceptions. OpenMP's thread count is per thread,
/// and kernels add in another order with another number of threads.
template <class... Calls>
void at_once(Calls&&... calls) {
  std::barrier start(sizeof...(calls));
  const int kernel_threads = at::get_num_threads();
  std::future<void> running[] = {std::async(std::launch::async, [&start, &calls, kernel_threads] {
    at::set_num_threads(kernel_threads);
    start.arrive_and_wait();
    calls();
  })...};
  for (std::future<void>& one : running) one.wait();
  for (std::future<void>& one : running) one.get();
}

constexpr int kRounds = 20;

TEST(SplitThreads, TwoStagesBesideEachOther) {
  constexpr int kBatches = 30;
  const BuildStage makes[] = {[](at::ScalarType dtype) { return mlp(dtype); }, tied_transformer};
  std::vector<Gradients> expected, got(2);
  std::vector<Stage> stages;
  std::vector<std::vector<MicroBatch>> batches;
  for (const BuildStage& make : makes) {
    expected.push_back(run_full(make, at::kFloat, kBatches));
    stages.push_back(build(make, at::kFloat));
    batches.emplace_back();
    for (int m = 0; m < kBatches; ++m) batches.back().push_back(forward(stages.back(), m));
  }
  const auto run = [&](int s) {
    for (int m = 0; m < kBatches; ++m) {
      WeightBackward weights;
      got[s].inputs.emplace_back(), got[s].retained.emplace_back();
      input_half(batches[s][m], got[s].inputs.back(), weights);
      batches[s][m] = {};
      stage_backward_weight(weights);
    }
    got[s].params = grads_of(stages[s].params);
  };
  at_once([&] { run(0); }, [&] { run(1); });
  for (int s : {0, 1}) expect_same(expected[s], got[s]);
}

TEST(SplitThreads, TwoMicroBatchesOfOneStageBesideEachOther) {
  const Gradients expected = exact_oracle(2 * kRounds);
  const Stage stage = build(exact_mlp, at::kFloat);
  const std::vector<MicroBatch> batches = batches_of(stage, 2 * kRounds);
  Gradients got;
  got.inputs.resize(batches.size());
  const auto run = [&](size_t first) {
    for (size_t m = first; m < batches.size(); m += 2) {
      WeightBackward weights;
      input_half(batches[m], got.inputs[m], weights);
      stage_backward_weight(weights);
    }
  };
  at_once([&] { run(0); }, [&] { run(1); });
  got.params = grads_of(stage.params);
  expect_same(expected, got);
}

TEST(SplitThreads, TheForwardToo) {
  const Stage stage = build(exact_mlp, at::kFloat);
  std::vector<MicroBatch> batches = batches_of(stage, 2 * kRounds);
  const Gradients expected = exact_oracle(2 * kRounds);
  Gradients got;
  got.inputs.resize(batches.size());
  const auto run = [&](size_t first) {
    for (size_t m = first; m < batches.size(); m += 2) {
      batches[m].outputs = stage.forward(batches[m].inputs);
      WeightBackward weights;
      input_half(batches[m], got.inputs[m], weights);
      batches[m].outputs.clear();
      stage_backward_weight(weights);
    }
  };
  at_once([&] { run(0); }, [&] { run(1); });
  got.params = grads_of(stage.params);
  expect_same(expected, got);
}

TEST(SplitThreads, ForwardAndHalvesOnThreeThreads) {
  const Gradients expected = run_full(tied_transformer, at::kFloat, 3);
  Gradients got;
  const Stage stage = build(tied_transformer, at::kFloat);
  for (int m = 0; m < 3; ++m) {
    MicroBatch batch;
    WeightBackward weights;
    got.inputs.emplace_back(), got.retained.emplace_back();
    at_once([&] { batch = forward(stage, m); });
    at_once([&] { input_half(batch, got.inputs.back(), weights); });
    at_once([&] { stage_backward_weight(weights); });
  }
  got.params = grads_of(stage.params);
  expect_same(expected, got);
}

/// W of one micro-batch runs during I of the next, passed from thread to thread.
TEST(SplitThreads, OneSecondHalfBesideTheNextFirst) {
  const Gradients expected = exact_oracle(kRounds);
  const Stage stage = build(exact_mlp, at::kFloat);
  const std::vector<MicroBatch> batches = batches_of(stage, kRounds);
  Gradients got;
  got.inputs.resize(kRounds);
  std::vector<WeightBackward> weights(kRounds);
  std::barrier turn(2);
  at_once(
      [&] {
        for (int m = 0; m < kRounds; ++m) {
          input_half(batches[m], got.inputs[m], weights[m]);
          turn.arrive_and_wait();
        }
      },
      [&] {
        for (int m = 0; m < kRounds; ++m) {
          turn.arrive_and_wait();
          stage_backward_weight(weights[m]);
        }
      });
  got.params = grads_of(stage.params);
  expect_same(expected, got);
}

}  // namespace
}  // namespace plumbline::backward
