// What recomputation keeps in memory, notices and refuses, and what an exception leaves behind.
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <memory>

#include "runtime/backward/testing/recompute_models.h"
#include "runtime/error.h"
#include "runtime/testing/refusal.h"

namespace plumbline::backward {
namespace {

using recompute_test::Backward;
using recompute_test::block;
using recompute_test::expect_same;
using recompute_test::input_half;
using recompute_test::layer;
using recompute_test::layer_parameters;
using recompute_test::Model;
using recompute_test::Recomputation;
using recompute_test::RecomputeGradients;
using recompute_test::run;
using recompute_test::two_layers;
using recompute_test::wave_like;
using testing::leaf;

using Tensors = std::vector<at::Tensor>;

/// Bytes of live CPU tensors.
class Bytes : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t size, size_t, size_t, c10::Device) override { alive += size; }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t alive = 0;
};

TEST_F(Recomputation, KeepsOnlyItsInputs) {
  const Model model = two_layers(at::kFloat);
  const auto bytes = std::make_shared<Bytes>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, bytes);
  const Tensors inputs = {leaf({64, 256})};
  Tensors parameters = layer_parameters(256);
  int64_t before = bytes->alive;
  const int64_t activation = 64 * 256 * 4;
  Tensors h = inputs;
  for (int i = 0; i < 4; ++i) h = block(true, layer, h, parameters);
  EXPECT_EQ(bytes->alive - before, 4 * activation);  // three between the blocks, and the output
  WeightBackward weights;
  Tensors grads;
  input_half(h, inputs, grads, weights);
  h.clear();
  grads.clear();
  const int64_t between = bytes->alive - before;
  stage_backward_weight(weights);
  for (const at::Tensor& parameter : parameters) parameter.mutable_grad() = at::Tensor();
  EXPECT_EQ(bytes->alive, before);
  // As plain autograd in halves leaves it; the blocks' arguments are not kept besides.
  before = bytes->alive;
  h = inputs;
  for (int i = 0; i < 4; ++i) h = block(false, layer, h, parameters);
  EXPECT_GT(bytes->alive - before, 4 * 3 * activation);
  input_half(h, inputs, grads, weights);
  h.clear();
  grads.clear();
  EXPECT_LE(between, bytes->alive - before);
}

TEST_F(Recomputation, RunsAgainForARetainedGraph) {
  const Model model = two_layers(at::kFloat);
  const RecomputeGradients plain = run(model, false, Backward::Full);
  for (const at::Tensor& parameter : model.parameters) parameter.mutable_grad() = at::Tensor();
  const Tensors outputs = model.forward(model, true), grads = wave_like(outputs);
  Tensors made;
  for (int i = 0; i < 2; ++i) {
    WeightBackward weights;
    stage_backward_input(outputs, grads, model.inputs, made, weights,
                         {.retain_graph = true, .accumulate_into_inputs = false});
    expect_same(made, plain.of_inputs, "gradient of input");
    if (i == 0) continue;  // the second half never runs
    stage_backward_weight(weights);
  }
  for (size_t i = 0; i < model.parameters.size(); ++i)
    EXPECT_TRUE(at::equal(model.parameters[i].grad(), plain.of_parameters[i])) << i;
  stage_backward(outputs, grads, model.inputs, made);
  expect_same(made, plain.of_inputs, "gradient of input");
  EXPECT_TRUE(at::equal(model.parameters[0].grad(), plain.of_parameters[0] * 2));
}

TEST_F(Recomputation, NoticesChangesInPlace) {
  const Model model = two_layers(at::kFloat);
  for (const at::Tensor& changed : {model.inputs[0], model.parameters[0], model.parameters[7]})
    for (const Backward backward : {Backward::Full, Backward::Halves}) {
      Model changing = model;
      changing.forward = [&](const Model& m, bool recompute) {
        const Tensors outputs = model.forward(m, recompute);
        const c10::NoGradGuard no_grad;
        changed.mul_(1);
        return outputs;
      };
      testing::expect_part(testing::failure<std::exception>([&] { run(changing, true, backward); }),
                           "modified by an inplace operation");
    }
  const at::Tensor x = leaf({2, 3});
  Tensors made;
  testing::expect_part(testing::failure<std::exception>([&] {
                         recompute_in_backward([](auto v, Tensors& out) { out = {v[0].mul_(2)}; }, {&x, 1}, {}, made);
                       }),
                       "the block changes its value 0 f32[2,3] in place");
  // Changes one of two outputs that share memory.
  const auto views = [](std::span<const at::Tensor> v, Tensors& out) {
    const at::Tensor h = v[0] * 3;
    out = {h, h[0]};
  };
  recompute_in_backward(views, {&x, 1}, {}, made);
  made[0].mul_(2);
  testing::expect_part(testing::failure<std::exception>([&] { (made[0].sum() + made[1].sum()).backward(); }),
                       "shares memory with another");
  // A sole output may change.
  recompute_in_backward([](auto v, Tensors& out) { out = {v[0] * 3}; }, {&x, 1}, {}, made);
  made[0].mul_(2).sum().backward();
  EXPECT_TRUE(at::equal(x.grad(), at::full({2, 3}, 6.0f)));
}

TEST_F(Recomputation, RefusesWhatItCannotDo) {
  const at::Tensor x = leaf({2, 3}), hidden = leaf({2, 3});
  const auto loss = [&](Block block) {
    Tensors made;
    recompute_in_backward(std::move(block), {&x, 1}, {}, made);
    return made.at(0).sum();
  };
  testing::expect_part(
      testing::failure<std::exception>([&] { loss([&](auto v, Tensors& out) { out = {v[0] * hidden}; }).backward(); }),
      "uses a tensor f32[2,3] that requires a gradient and is none of its inputs");
  int calls = 0;
  testing::expect_part(testing::failure<std::exception>([&] {
                         loss([&](auto v, Tensors& out) { out = {v[0].narrow(0, 0, 1 + calls++)}; }).backward();
                       }),
                       "the block made output 0 f32[2,3], at first f32[1,3]");
  calls = 0;
  testing::expect_part(testing::failure<std::exception>(
                           [&] { loss([&](auto v, Tensors& out) { out.assign(1 + calls++, v[0] * 2); }).backward(); }),
                       "the block made 2 outputs, at first 1");
  const at::Tensor twice = loss([](auto v, Tensors& out) { out = {v[0].square()}; });
  testing::expect_part(testing::failure<std::exception>([&] {
                         torch::autograd::grad({twice}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true);
                       }),
                       "no second derivative");
  twice.backward();
  testing::expect_part(testing::failure<std::exception>([&] { twice.backward(); }), "second time");
  at::autocast::set_autocast_enabled(at::kCPU, true);
  testing::expect_part(testing::failure<std::exception>([&] { loss([](auto v, Tensors& out) { out = {v[0] * 2}; }); }),
                       "inside an autocast region");
  at::autocast::set_autocast_enabled(at::kCPU, false);
}

TEST_F(Recomputation, LeavesNothingBehindAfterAnException) {
  const Model model = two_layers(at::kFloat);
  const RecomputeGradients plain = run(model, false, Backward::Full);
  int calls = 0, fail_at = 0;
  const Block failing = [&](std::span<const at::Tensor> v, Tensors& outputs) {
    if (++calls == fail_at) throw Error("the block failed");
    layer(v, outputs);
  };
  const Tensors& p = model.parameters;
  for (fail_at = 1; fail_at <= 2; ++fail_at)
    for (const Backward backward : {Backward::Full, Backward::Halves}) {
      calls = 0;
      Model broken = model;
      broken.forward = [&](const Model& m, bool) {
        return block(true, layer, block(true, failing, m.inputs, {p.begin(), p.begin() + 4}), {p.begin() + 4, p.end()});
      };
      testing::expect_part(testing::failure<std::exception>([&] { run(broken, true, backward); }), "the block failed");
      EXPECT_TRUE(c10::GradMode::is_enabled());
    }
  model.inputs[0].mutable_grad() = at::Tensor();
  const RecomputeGradients after = run(model, true, Backward::Halves);
  expect_same(after.of_inputs, plain.of_inputs, "gradient of input");
  expect_same(after.of_parameters, plain.of_parameters, "gradient of parameter");
}

}  // namespace
}  // namespace plumbline::backward
