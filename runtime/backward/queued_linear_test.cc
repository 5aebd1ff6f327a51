#include "runtime/backward/queued_linear.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <random>

#include "runtime/backward/split/split_backward.h"
#include "runtime/backward/stage_backward.h"
#include "runtime/capture/interpose.h"

namespace plumbline::backward {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Records the operators of this thread, in order.
class Names : public capture::Interposer {
 public:
  void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) override {
    const std::string& name = op.operator_name().name;
    if (name == "aten::mm" || name == "aten::addmm" || name == "aten::sum") seen.push_back(name);
    op.callBoxed(stack);
  }
  std::vector<std::string> seen;
};

struct Setting {
  std::vector<int64_t> shape;
  int64_t width;
  at::ScalarType dtype;
  bool bias, transposed;
  bool x_requires_grad, weight_requires_grad;
};

/// Output and gradients of x, weight and bias; the operators called.
Tensors gradients(const Setting& s, bool queued, bool halves, std::vector<std::string>& operators) {
  at::manual_seed(static_cast<uint64_t>(s.width));
  const auto leaf = [&](at::IntArrayRef sizes, bool requires_grad) {
    return at::randn(sizes).to(s.dtype).requires_grad_(requires_grad);
  };
  at::Tensor x = leaf(s.shape, false);
  if (s.transposed) x = x.transpose(-1, -2).contiguous().transpose(-1, -2);
  x.requires_grad_(s.x_requires_grad);
  const at::Tensor weight = leaf({s.width, s.shape.back()}, s.weight_requires_grad);
  const at::Tensor bias = s.bias ? leaf({s.width}, true) : at::Tensor();
  Names names;
  const capture::InterposerScope scope(names);
  const Tensors outputs = {queued ? queued_linear(x, weight, bias)
                                  : at::linear(x, weight, s.bias ? std::optional(bias) : std::nullopt)};
  Tensors made;
  if (outputs[0].requires_grad()) {
    at::manual_seed(3);
    const Tensors grads = {at::randn(outputs[0].sizes()).to(s.dtype)};
    if (halves) {
      WeightBackward weights;
      stage_backward_input(outputs, grads, {&x, 1}, made, weights, {.accumulate_into_inputs = false});
      EXPECT_FALSE(weight.grad().defined());
      stage_backward_weight(weights);
    } else {
      stage_backward(outputs, grads, {&x, 1}, made);
    }
  }
  made.resize(1);
  operators = names.seen;
  std::sort(operators.begin(), operators.end());
  return {outputs[0].detach(), made[0], weight.grad(), bias.defined() ? bias.grad() : at::Tensor()};
}

TEST(QueuedLinear, HasTheBitsAndTheOperatorsOfAutograd) {
  at::set_num_threads(1);
  std::mt19937 random(11);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  for (int round = 0; round < 200; ++round) {
    Setting s;
    for (int64_t dims = pick(2, 3); dims > 0; --dims) s.shape.push_back(pick(1, 40));
    s.width = pick(1, 70);
    s.dtype = pick(0, 1) ? at::kFloat : at::kBFloat16;
    s.bias = pick(0, 1);
    s.transposed = pick(0, 3) == 0;
    s.x_requires_grad = pick(0, 3) > 0;
    s.weight_requires_grad = pick(0, 3) > 0;
    std::vector<std::string> theirs_called, ours_called;
    const Tensors theirs = gradients(s, false, false, theirs_called);
    for (const bool halves : {false, true}) {
      const Tensors ours = gradients(s, true, halves, ours_called);
      EXPECT_EQ(ours_called, theirs_called) << "round " << round;
      for (size_t i = 0; i < theirs.size(); ++i) {
        ASSERT_EQ(ours[i].defined(), theirs[i].defined()) << "round " << round << ", value " << i;
        if (!ours[i].defined()) continue;
        EXPECT_TRUE(at::equal(ours[i], theirs[i])) << "round " << round << ", value " << i;
        EXPECT_EQ(ours[i].strides(), theirs[i].strides()) << "round " << round << ", value " << i;
      }
    }
  }
}

TEST(QueuedLinear, MayBeRetainedAndChangesInPlaceAreNoticed) {
  const at::Tensor x = at::randn({4, 6}).requires_grad_(), weight = at::randn({5, 6}).requires_grad_(),
                   bias = at::randn({5}).requires_grad_();
  Tensors made;
  const Tensors outputs = {queued_linear(x, weight, bias)}, grads = {at::randn({4, 5})};
  for (int i = 0; i < 2; ++i) {
    WeightBackward weights;
    stage_backward_input(outputs, grads, {&x, 1}, made, weights,
                         {.retain_graph = true, .accumulate_into_inputs = false});
    stage_backward_weight(weights);
  }
  EXPECT_TRUE(at::equal(weight.grad(), grads[0].t().mm(x.detach()) * 2));
  {
    const c10::NoGradGuard no_grad;
    weight.mul_(2);
  }
  EXPECT_ANY_THROW(outputs[0].sum().backward());
  // The output may change in place, even if it is a view internally.
  const at::Tensor three = at::randn({2, 3, 6}).requires_grad_();
  queued_linear(three, weight, bias).mul_(3).sum().backward();
  EXPECT_TRUE(three.grad().defined());
}

}  // namespace
}  // namespace plumbline::backward
