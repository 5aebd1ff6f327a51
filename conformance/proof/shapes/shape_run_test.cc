#include "conformance/proof/shapes/shape_run.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "conformance/proof/shapes/hollow_memory.h"
#include "runtime/error.h"

namespace plumbline::proof {
namespace {

using Tensors = std::vector<at::Tensor>;

at::Tensor hollow_like(const at::Tensor& tensor) {
  at::Tensor hollow = hollow_tensor(tensor.sizes(), tensor.strides(), tensor.scalar_type());
  return hollow.requires_grad_(tensor.requires_grad());
}

std::string layout_text(const at::Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  std::ostringstream text;
  text << tensor.scalar_type() << tensor.sizes() << " at " << tensor.strides() << " from " << tensor.storage_offset();
  return text.str();
}

/// The layouts of the results of `f`, of the gradients of its inputs, and which results share memory with an input.
std::vector<std::string> layouts(const Tensors& inputs, const std::function<Tensors(const Tensors&)>& f) {
  const Tensors outputs = f(inputs);
  std::vector<std::string> texts;
  for (const at::Tensor& output : outputs) {
    std::string text = layout_text(output) + (output.requires_grad() ? " with a history" : "");
    for (const at::Tensor& input : inputs) text += output.is_alias_of(input) ? " shares memory" : "";
    texts.push_back(text);
  }
  if (!outputs[0].requires_grad()) return texts;
  outputs[0].backward(at::ones_like(outputs[0]));
  for (const at::Tensor& input : inputs) texts.push_back("gradient " + layout_text(input.grad()));
  return texts;
}

struct Expression {
  std::string name;
  Tensors inputs;
  std::function<Tensors(const Tensors&)> f;
};

std::vector<Expression> expressions() {
  const at::Tensor x = at::rand({2, 6, 8}).requires_grad_(), w = at::rand({12, 8}).requires_grad_(),
                   b = at::rand({12}).requires_grad_(), g = at::rand({8}).requires_grad_();
  const at::Tensor tokens = at::randint(0, 12, {2, 6}), q = at::rand({2, 6, 4, 8}).transpose(1, 2).requires_grad_(),
                   k = at::rand({2, 6, 2, 8}).transpose(1, 2).requires_grad_();
  const at::Tensor half = at::rand({4, 8}).to(at::kBFloat16).requires_grad_();
  return {
      {"linear", {x, w, b}, [](const Tensors& in) { return Tensors{at::linear(in[0], in[1], in[2])}; }},
      {"linear without bias", {x, w}, [](const Tensors& in) { return Tensors{at::linear(in[0], in[1])}; }},
      {"rms_norm", {x, g}, [](const Tensors& in) { return Tensors{at::rms_norm(in[0], {8}, in[1], 1e-5)}; }},
      {"layer_norm", {x, g, g}, [](const Tensors& in) { return Tensors{at::layer_norm(in[0], {8}, in[1], in[2])}; }},
      {"embedding", {w, tokens}, [](const Tensors& in) { return Tensors{at::embedding(in[0], in[1])}; }},
      {"views",
       {x},
       [](const Tensors& in) {
         return Tensors{at::cat({at::neg(in[0].slice(2, 4)), in[0].slice(2, 0, 4)}, 2), in[0].transpose(1, 2),
                        in[0].flatten(1), in[0].transpose(0, 1).flatten(1)};
       }},
      {"gated", {x}, [](const Tensors& in) { return Tensors{at::mul(at::silu(in[0]), in[0]), at::gelu(in[0])}; }},
      {"attention",
       {q, q, q},
       [](const Tensors& in) { return Tensors{at::scaled_dot_product_attention(in[0], in[1], in[2], {}, 0.0, true)}; }},
      {"attention of shared keys",
       {q, k, k},
       [](const Tensors& in) {
         return Tensors{at::scaled_dot_product_attention(in[0], in[1], in[2], {}, 0.0, true, {}, true)};
       }},
      {"cross entropy",
       {w, tokens.view({12})},
       [](const Tensors& in) { return Tensors{at::cross_entropy_loss(in[0], in[1].remainder(8))}; }},
      {"mean", {x}, [](const Tensors& in) { return Tensors{at::mean(in[0]), at::sum(in[0], 1)}; }},
      {"views in place",
       {x},
       [](const Tensors& in) {
         const at::Tensor y = in[0].detach();
         y.unsqueeze_(1).transpose_(0, 1);
         return Tensors{y, at::mul(y, 2)};
       }},
      {"casts", {half}, [](const Tensors& in) { return Tensors{in[0].to(at::kFloat), in[0].t().contiguous()}; }},
      {"numbers", {x}, [](const Tensors& in) { return Tensors{in[0] * 2 + 1, in[0].detach().add_(1).mul_(3)}; }},
  };
}

TEST(ShapeRun, GivesTheLayoutsOfTheKernels) {
  for (const Expression& expression : expressions()) {
    const std::vector<std::string> right = layouts(expression.inputs, expression.f);
    Tensors hollow;
    for (const at::Tensor& input : expression.inputs) hollow.push_back(hollow_like(input));
    ShapeRun run;
    const capture::InterposerScope scope(run);
    for (int repetition = 0; repetition < 2; ++repetition) {  // the second uses the notes of the first
      for (at::Tensor& input : hollow) input.mutable_grad() = at::Tensor();
      EXPECT_EQ(layouts(hollow, expression.f), right) << expression.name << ", repetition " << repetition;
    }
  }
}

TEST(ShapeRun, TakesNoMemory) {
  ShapeRun run;
  const capture::InterposerScope scope(run);
  const int64_t million = 1 << 20;
  const at::Tensor a = hollow_tensor({million, million}, at::kFloat), b = at::mm(a, a.t());  // 4 TiB each
  EXPECT_EQ(b.sizes(), a.sizes());
  EXPECT_TRUE(is_hollow(b.const_data_ptr()));
  EXPECT_NE(a.const_data_ptr(), b.const_data_ptr());
  EXPECT_FALSE(is_hollow(&million));
}

TEST(ShapeRun, AddressesOfFreedTensorsAreUsedAgain) {
  const auto make = [] { return hollow_tensor({1 << 20, 1 << 20}, at::kFloat); };
  const void* const first = make().const_data_ptr();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(make().const_data_ptr(), first);
}

TEST(ShapeRun, RefusesWhatAsksForValues) {
  ShapeRun run;
  const capture::InterposerScope scope(run);
  const at::Tensor x = hollow_tensor({2}, at::kFloat);
  EXPECT_THROW(x.sum().item(), InputError);
  EXPECT_THROW(at::equal(x, x), InputError);
  EXPECT_THROW(at::nonzero(x), InputError);
  EXPECT_THROW(at::dropout(x, 0.5, true), InputError);
}

TEST(ShapeRun, OtherTensorsHaveTheirValues) {
  const at::Tensor x = at::ones({2}).mul(3);
  ShapeRun run;
  const capture::InterposerScope scope(run);
  EXPECT_EQ(x.sum().item().toDouble(), 6.0);
}

}  // namespace
}  // namespace plumbline::proof
