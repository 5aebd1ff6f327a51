// hold() with several targets, against plain autograd over the whole model: the models that hold() makes keep their
// gradients after it, the model of a rank those of the rank's stages. And models and batches that it refuses, or takes
// as they seldom are.
#include "conformance/hold.h"

#include <ATen/core/Formatting.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <c10/util/accumulate.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <vector>

namespace plumbline::conformance {
namespace {

constexpr int64_t kHeadWidth = 4;

/// Whole numbers from -1 to 1, so that every sum is exact in any order.
at::Tensor small_numbers(at::IntArrayRef sizes, int64_t step) {
  return at::arange(c10::multiply_integers(sizes))
      .mul(step)
      .remainder(11)
      .remainder(3)
      .sub(1)
      .to(at::kFloat)
      .view(sizes);
}

struct TwoHeads : torch::nn::Module {
  TwoHeads() {
    const c10::NoGradGuard no_grad;
    int64_t step = 2;
    for (const at::Tensor& parameter : parameters()) parameter.copy_(small_numbers(parameter.sizes(), step++));
  }
  std::vector<at::Tensor> forward(const at::Tensor& x) {
    const at::Tensor h = at::relu(plumbline::call(stem, x));
    return {plumbline::call(first, h), plumbline::call(second, h)};
  }

  torch::nn::Linear stem = register_module("stem", torch::nn::Linear(kHeadWidth, kHeadWidth));
  torch::nn::Linear first = register_module("first", torch::nn::Linear(kHeadWidth, kHeadWidth));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(kHeadWidth, kHeadWidth));
};

TEST(Hold, RanksHaveTheGradientsOfPlainAutogradForSeveralTargets) {
  constexpr int kMicrobatches = 4;
  const at::Tensor x = small_numbers({8, kHeadWidth}, 8), one = small_numbers({8, kHeadWidth}, 9),
                   other = small_numbers({8, kHeadWidth}, 10);
  ASSERT_FALSE(at::equal(one, other));
  TwoHeads whole;
  const std::vector<at::Tensor> outputs = whole.forward(x);
  (outputs[0].sub(one).square().sum() + outputs[1].sub(other).square().sum()).div(kMicrobatches).backward();

  // Owned by the function, which stays registered as the model; it is never called concurrently.
  const auto made = std::make_shared<std::vector<std::shared_ptr<TwoHeads>>>();
  const auto make = [made] {
    const std::shared_ptr<TwoHeads> net = made->emplace_back(std::make_shared<TwoHeads>());
    return OwnModel{net, [net](const std::vector<at::Tensor>& inputs) { return net->forward(inputs.at(0)); }};
  };
  EXPECT_EQ(hold(make, {.split = {"first"},
                        .inputs = {x},
                        .target = {one, other},
                        .loss = {LossKind::Mse, Reduction::Sum},
                        .microbatches = kMicrobatches,
                        .schedules = "1f1b"}),
            0);

  const auto expected = whole.named_parameters();
  int ranks = 0;
  for (const std::shared_ptr<TwoHeads>& net : *made) {
    // The models of the oracles have all gradients or none.
    if (net->stem->weight.grad().defined() == net->second->weight.grad().defined()) continue;
    ++ranks;
    for (const auto& item : net->named_parameters()) {
      const at::Tensor grad = item.value().grad();
      const bool is_right = !grad.defined() || at::equal(grad, expected[item.key()].grad());
      EXPECT_TRUE(is_right) << item.key() << "\n" << grad << "\nexpected:\n" << expected[item.key()].grad();
    }
  }
  EXPECT_EQ(ranks, 2);
}

// Ranks that are threads would capture one module at once, and oracles begin with what ranks have trained.
TEST(Hold, AModuleThatComesAgainIsRefused) {
  const auto net = std::make_shared<TwoHeads>();
  const auto forward = [net](const std::vector<at::Tensor>& inputs) { return net->forward(inputs.at(0)); };
  ::testing::internal::CaptureStderr();
  const int code = hold([net, forward] { return OwnModel{net, forward}; },
                        {.split = {"first"}, .inputs = {small_numbers({8, kHeadWidth}, 8)}, .schedules = "1f1b"});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "plumbline: hold: `make` returned one module twice; it must construct a model of its own each time\n");
  EXPECT_EQ(code, 2);
}

/// A language model of one type. Its stages share the embedding, so they add its gradient in another order than the
/// whole model, which agrees with them within the bounds of that type.
template <at::ScalarType type>
struct TiedWords : torch::nn::Module {
  static constexpr int64_t kWords = 16;
  TiedWords() { to(type); }
  at::Tensor forward(const at::Tensor& ids) {
    return at::linear(at::gelu(plumbline::call(middle, plumbline::call(words, ids))), words->weight);
  }

  torch::nn::Embedding words = register_module("words", torch::nn::Embedding(kWords, 8));
  torch::nn::Linear middle = register_module("middle", torch::nn::Linear(8, 8));
};

HoldOptions of_words() {
  const at::Tensor ids = at::arange(8 * 6).mul(7).remainder(TiedWords<at::kFloat>::kWords).view({8, 6});
  return {.split = {"middle"},
          .inputs = {ids},
          .target = ids.roll({1}, {1}),
          .loss = {LossKind::CrossEntropy, Reduction::Mean},
          .schedules = "1f1b"};
}

TEST(Hold, ParametersTellTheTypeOfAModelOfWholeNumbers) {
  EXPECT_EQ(hold<TiedWords<at::kFloat>>(of_words()), 0);
  EXPECT_EQ(hold<TiedWords<at::kBFloat16>>(of_words()), 0);
}

/// As norms often are, the second part is of float32.
struct MixedParts : torch::nn::Module {
  MixedParts() { first->to(at::kBFloat16); }
  at::Tensor forward(const at::Tensor& x) { return plumbline::call(second, plumbline::call(first, x).to(at::kFloat)); }

  torch::nn::Linear first = register_module("first", torch::nn::Linear(kHeadWidth, kHeadWidth));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(kHeadWidth, kHeadWidth));
};

TEST(Hold, AModelOfBfloat16MayHavePartsOfFloat32) {
  EXPECT_EQ(hold<MixedParts>({.split = {"second"},
                              .inputs = {small_numbers({8, kHeadWidth}, 8).to(at::kBFloat16)},
                              .target = small_numbers({8, kHeadWidth}, 9),
                              .loss = {LossKind::Mse, Reduction::Sum},
                              .schedules = "1f1b"}),
            0);
}

struct TwoTypes : TwoHeads {
  TwoTypes() { second->to(at::kHalf); }
};

TEST(Hold, NumbersOfSeveralTypesAreRefused) {
  const auto said = [](int (*hold_one)(const HoldOptions&), at::ScalarType of_input) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(hold_one({.split = {"first"}, .inputs = {at::ones({8, kHeadWidth}).to(of_input)}}), 2);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said(hold<TwoTypes>, at::kFloat),
            "plumbline: hold: parameter 'stem.weight' is f32[4,4], but parameter 'second.weight' is f16[4,4]; models "
            "of one type, or of f32 and bf16, are judged\n");
  EXPECT_EQ(said(hold<TwoHeads>, at::kDouble),
            "plumbline: hold: parameter 'stem.weight' is f32[4,4], but input 0 is f64[8,4]; models of one type, or of "
            "f32 and bf16, are judged\n");
}

// Under dualpipe two ranks hold the first stage, and would add to the gradient of one tensor at once.
TEST(Hold, TheCallersTensorsGetNoGradients) {
  const at::Tensor x = small_numbers({8, kHeadWidth}, 8).requires_grad_(),
                   target = small_numbers({8, kHeadWidth}, 9).requires_grad_();
  EXPECT_EQ(hold<TwoHeads>({.split = {"first"},
                            .inputs = {x},
                            .target = target,
                            .loss = {LossKind::Mse, Reduction::Sum},
                            .schedules = "1f1b"}),
            0);
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(target.grad().defined());
}

}  // namespace
}  // namespace plumbline::conformance
