// The norm of a pipeline's gradients against LibTorch's norm of one vector of all of them.
#include "runtime/engine/gradient_norm.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "runtime/transport/threads/threads.h"

namespace plumbline::engine {
namespace {

using States = std::map<int, split::StageState>;

at::Tensor parameter_with(const at::Tensor& gradient) {
  at::Tensor parameter = at::zeros_like(gradient).requires_grad_();
  parameter.mutable_grad() = gradient;
  return parameter;
}

transport::Deadline soon_enough() { return transport::Deadline::after(std::chrono::seconds(30)); }

/// The norm on every rank: `states` by rank.
std::vector<double> norms(const std::vector<States>& states, Norm norm) {
  std::vector<double> results(states.size());
  transport::run_thread_ranks(static_cast<int>(states.size()), [&](transport::Transport& transport) {
    results[transport.rank()] = gradient_norm(states[transport.rank()], norm, transport, soon_enough());
  });
  return results;
}

TEST(GradientNorm, IsThatOfAllGradientsOnEveryRankAndASharedOneCountsOnce) {
  at::manual_seed(7);
  const at::Tensor a = at::randn({5, 3}), b = at::randn({4}), c = at::randn({2, 2}), tied = at::randn({6});
  const std::vector<States> states = {
      {{0, {{{"a", parameter_with(a)}, {"tied", parameter_with(tied)}}, {}}}},
      {{1, {{{"b", parameter_with(b)}}, {}}}, {3, {{{"tied", parameter_with(tied.clone())}}, {}}}},
      {{2,
        {{{"c", parameter_with(c)}, {"none", at::ones({3}).requires_grad_()}, {"tied", parameter_with(tied)}}, {}}}}};
  const at::Tensor all = at::cat({a.flatten(), b, c.flatten(), tied}).to(at::kDouble);
  const double two = at::linalg_vector_norm(all).item<double>(), infinity = all.abs().max().item<double>();
  for (const double norm : norms(states, Norm::Two))
    EXPECT_NEAR(norm, two, 32 * 0x1p-53 * two);  // 31 sums, in another order
  EXPECT_EQ(norms(states, Norm::Infinity), std::vector<double>(3, infinity));
}

TEST(GradientNorm, HasTheSameBitsForEverySplit) {
  at::manual_seed(8);
  std::map<std::string, at::Tensor> parameters;
  for (int i = 0; i < 12; ++i)
    parameters["layers." + std::to_string(i)] = parameter_with(at::randn({17}) * std::pow(10, i % 5));
  const auto split_over = [&](int ranks) {
    std::vector<States> states(ranks);
    int i = 0;
    for (const auto& item : parameters) states[i++ % ranks][0].parameters.insert(item);
    return norms(states, Norm::Two).front();
  };
  const double one = split_over(1);
  for (int ranks : {2, 3, 4}) EXPECT_EQ(split_over(ranks), one) << ranks << " ranks";
}

TEST(GradientNorm, SumsHalfPrecisionInDouble) {
  // 4096 squares of 2^-4 sum to 16; a sum in bfloat16 stops at 1, where 2^-8 is half of the last bit.
  const std::vector<States> states = {{{0, {{{"w", parameter_with(at::full({4096}, 0.0625, at::kBFloat16))}}, {}}}}};
  EXPECT_EQ(norms(states, Norm::Two).front(), 4.0);
}

TEST(GradientNorm, AComplexGradientCountsItsAbsoluteValue) {
  const at::Tensor gradient = at::complex(at::tensor({3.0F, 0.0F}), at::tensor({4.0F, 12.0F}));  // sizes 5 and 12
  const std::vector<States> states = {{{0, {{{"w", parameter_with(gradient)}}, {}}}}};
  EXPECT_EQ(norms(states, Norm::Two).front(), 13.0);
  EXPECT_EQ(norms(states, Norm::Infinity).front(), 12.0);
}

TEST(GradientNorm, AGradientThatIsNotFiniteShowsOnEveryRank) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {inf, -inf, nan})
    for (const Norm norm : {Norm::Two, Norm::Infinity})
      for (int place : {0, 1, 2}) {
        std::vector<States> states(3);
        for (int rank = 0; rank < 3; ++rank) {
          at::Tensor gradient = at::ones({3});
          if (rank == place) gradient[1] = bad;
          states[rank][rank].parameters["w" + std::to_string(rank)] = parameter_with(gradient);
        }
        for (const double found : norms(states, norm))
          EXPECT_FALSE(std::isfinite(found)) << bad << " on rank " << place;
      }
}

TEST(GradientNorm, IsZeroWithoutGradients) {
  EXPECT_EQ(norms({States{}, States{}}, Norm::Two), (std::vector<double>{0, 0}));
}

}  // namespace
}  // namespace plumbline::engine
