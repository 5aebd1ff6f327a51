// Calibrates the gates of rounding.h: correct runs in float32 and bfloat16, in several orders of summation, must stay
// well within them for 100 seeds of each model; runs with seeded bugs must not.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "reference/models/parts/fill.h"
#include "reference/rounding/rounding.h"
#include "reference/testing/error_ratio.h"
#include "runtime/testing/in_full.h"

namespace plumbline::reference {
namespace {

/// How a run splits and orders its batch. The float64 reference run takes it whole.
struct Order {
  int chunks = 1;
  bool reversed = false;
};

enum class Bug { None, LostMicrobatch, Scaled, BiasRow };

using Data = std::map<std::string, at::Tensor>;
/// Returns output and loss for some rows; called once per chunk.
using Model = NamedResults (*)(const Data& parameters, const at::Tensor& x, const at::Tensor& target, int64_t batch);

struct Problem {
  const char* name;
  Model model;
  Data parameters;
  at::Tensor x, target;
  bool divisible;  ///< rows are independent in the forward
};

at::Tensor drawn(at::IntArrayRef shape, uint64_t seed, const char* name, double mean, double deviation) {
  const at::Tensor out = at::empty(shape, at::kFloat);
  models::fill_normal(out, seed, name, mean, deviation);
  return out;
}

Data drawn_all(const std::map<std::string, std::vector<int64_t>>& shapes, uint64_t seed) {
  Data out;
  for (const auto& [name, shape] : shapes) {
    const bool gain = name.find("gain") != std::string::npos;
    out[name] = drawn(shape, seed, name.c_str(), gain ? 1 : 0, shape.size() > 1 ? 1 / std::sqrt(shape[1]) : 0.2);
  }
  return out;
}

NamedResults mlp(const Data& p, const at::Tensor& x, const at::Tensor& target, int64_t batch) {
  const at::Tensor hidden = at::gelu(at::linear(x, p.at("w1"), p.at("b1")));
  const at::Tensor out = at::linear(at::gelu(at::linear(hidden, p.at("w2"), p.at("b2"))), p.at("w3"), p.at("b3"));
  return {{"output", out}, {"loss", at::mse_loss(out, target, at::Reduction::Sum) / static_cast<double>(batch * 3)}};
}

NamedResults attention(const Data& p, const at::Tensor& x, const at::Tensor& target, int64_t batch) {
  const int64_t rows = x.size(0), length = x.size(1), width = x.size(2), heads = 2;
  const at::Tensor normed = at::layer_norm(x, {width}, p.at("gain1"), p.at("shift1"));
  const auto qkv = at::linear(normed, p.at("qkv"), p.at("qkv_bias")).chunk(3, -1);
  const auto split = [&](const at::Tensor& t) {
    return t.reshape({rows, length, heads, width / heads}).transpose(1, 2);
  };
  const at::Tensor mixed = at::scaled_dot_product_attention(split(qkv[0]), split(qkv[1]), split(qkv[2]), {}, 0.0, true);
  const at::Tensor residual = x + at::linear(mixed.transpose(1, 2).reshape({rows, length, width}), p.at("proj"));
  const at::Tensor logits =
      at::linear(at::layer_norm(residual, {width}, p.at("gain2"), p.at("shift2")), p.at("head"), p.at("head_bias"));
  const at::Tensor loss = at::cross_entropy_loss(logits.flatten(0, 1), target.flatten(), {}, at::Reduction::Sum);
  return {{"output", logits}, {"loss", loss / static_cast<double>(batch * length)}};
}

NamedResults convolution(const Data& p, const at::Tensor& x, const at::Tensor& target, int64_t) {
  const at::Tensor mean = at::zeros({6}, x.options()), variance = at::ones({6}, x.options());
  at::Tensor y = at::conv2d(x, p.at("conv"), p.at("conv_bias"), 1, 1);
  y = at::gelu(at::batch_norm(y, p.at("gain"), p.at("shift"), mean, variance, true, 0.1, 1e-5, false));
  const at::Tensor out = at::linear(y.mean({2, 3}), p.at("head"), p.at("head_bias"));
  return {{"output", out},
          {"loss", at::mse_loss(out, target)},
          {"running_mean", mean.clone()},
          {"running_variance", variance.clone()}};
}

Problem problem(int which, uint64_t seed) {
  if (which == 0)
    return {
        "mlp",
        mlp,
        drawn_all({{"w1", {24, 16}}, {"b1", {24}}, {"w2", {24, 24}}, {"b2", {24}}, {"w3", {5, 24}}, {"b3", {5}}}, seed),
        drawn({32, 16}, seed, "x", 0.5, 1),
        drawn({32, 5}, seed, "target", 0, 1),
        true};
  if (which == 1) {
    const at::Tensor target = at::empty({8, 6}, at::kLong);
    models::fill_integers(target, seed, "target", 0, 9);
    return {"layer norm, attention, cross entropy",
            attention,
            drawn_all({{"gain1", {16}},
                       {"shift1", {16}},
                       {"qkv", {48, 16}},
                       {"qkv_bias", {48}},
                       {"proj", {16, 16}},
                       {"gain2", {16}},
                       {"shift2", {16}},
                       {"head", {10, 16}},
                       {"head_bias", {10}}},
                      seed),
            drawn({8, 6, 16}, seed, "x", 2, 1),
            target,
            true};
  }
  return {"convolution, batch norm, gelu",
          convolution,
          drawn_all({{"conv", {6, 3, 3, 3}},
                     {"conv_bias", {6}},
                     {"gain", {6}},
                     {"shift", {6}},
                     {"head", {4, 6}},
                     {"head_bias", {4}}},
                    seed),
          drawn({8, 3, 6, 6}, seed, "x", 0.5, 1),
          drawn({8, 4}, seed, "target", 0, 1),
          false};
}

/// Rounds the data to `storage`, so that every type computes with the same numbers.
void round_to(Problem& problem, at::ScalarType storage) {
  for (auto& [name, value] : problem.parameters) value = value.to(storage);
  problem.x = problem.x.to(storage);
  if (problem.target.is_floating_point()) problem.target = problem.target.to(storage);
}

NamedResults run(const Problem& problem, at::ScalarType type, const Order& order, Bug bug = Bug::None) {
  Data parameters;
  for (const auto& [name, value] : problem.parameters) parameters[name] = value.to(type, false, true).requires_grad_();
  at::Tensor x = problem.x.to(type), target = problem.target;
  if (target.is_floating_point()) target = target.to(type);
  const int64_t rows = x.size(0);
  if (order.reversed && !problem.divisible) {
    x = x.flip(0);
    target = target.flip(0);
  }
  const int chunks = problem.divisible ? order.chunks : 1;
  const auto xs = x.chunk(chunks), targets = target.chunk(chunks);
  std::vector<NamedResults> parts(chunks);
  for (int step = 0; step < chunks; ++step) {
    const int chunk = order.reversed ? chunks - 1 - step : step;
    parts[chunk] = problem.model(parameters, xs[chunk], targets[chunk], rows);
    if (bug == Bug::LostMicrobatch && step == chunks / 2) continue;
    parts[chunk].at("loss").backward();
  }
  NamedResults out;
  std::vector<at::Tensor> outputs;
  for (NamedResults& part : parts) {
    outputs.push_back(part.at("output"));
    out["loss"] = out["loss"].defined() ? out["loss"] + part.at("loss") : part.at("loss");
    for (const auto& [name, value] : part)
      if (name != "output" && name != "loss") out[name] = value;
  }
  out["output"] = at::cat(outputs);
  if (order.reversed && !problem.divisible) out["output"] = out["output"].flip(0);
  for (const auto& [name, value] : parameters) out["grad." + name] = value.grad();
  // A weight, because the gradient of a bias before batch norm is pure rounding error.
  if (bug == Bug::Scaled)
    out.at(out.contains("grad.conv") ? "grad.conv" : out.contains("grad.w1") ? "grad.w1" : "grad.qkv").mul_(1.001);
  if (bug == Bug::BiasRow) {
    for (auto& [name, value] : out)
      if (name.starts_with("grad.") && value.dim() == 1 && name != "grad.conv_bias") {
        value = value.roll(1);
        break;
      }
  }
  return out;
}

struct Worst {
  double element = 0, norm = 0;
};

Worst calibrate(int which, at::ScalarType type, int seeds, const std::vector<Order>& orders) {
  Worst worst;
  for (int seed = 0; seed < seeds; ++seed) {
    Problem data = problem(which, seed);
    round_to(data, type);
    const BoundedResults bounds =
        running_error([&] { return run(data, at::kDouble, {}); }, rounding_model(type, seed + 1000));
    for (const Order& order : orders) {
      const ErrorRatio ratio = error_ratio(bounds, run(data, type, order));
      worst.element = std::max(worst.element, ratio.element);
      worst.norm = std::max(worst.norm, ratio.norm);
      if (ratio.element > 1 || ratio.norm > 1) {
        ADD_FAILURE() << data.name << " " << type << " seed " << seed << " chunks " << order.chunks << ": "
                      << ratio.element << " of the bound at " << ratio.element_where << ", " << ratio.norm
                      << " of the gate at " << ratio.norm_where;
      }
    }
  }
  return worst;
}

/// One thread: otherwise waiting threads would take most of the time, and the order of sums would vary.
class Calibration : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { at::set_num_threads(1); }
  void TearDown() override { at::set_num_threads(threads_); }

 private:
  const int threads_ = at::get_num_threads();
};

TEST_P(Calibration, CorrectRunsStayInside) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    std::vector<Order> orders = {{1, false}, {1, true}};
    if (type == at::kFloat && GetParam() != 2) orders = {{1, false}, {4, false}, {8, true}};
    const Worst worst = calibrate(GetParam(), type, testing::in_full_or_sample(100, 25), orders);
    std::cout << problem(GetParam(), 0).name << " " << type << ": worst error/bound " << worst.element << ", norm/gate "
              << worst.norm << "\n";
    // Below the alarm threshold of 1, with some room for the kernels of other builds.
    EXPECT_LT(worst.element, 0.7) << type;
    EXPECT_LT(worst.norm, 0.7) << type;
  }
}

TEST_P(Calibration, SeededBugsAreCaught) {
  for (int seed = 0; seed < 10; ++seed) {
    Problem data = problem(GetParam(), seed);
    const BoundedResults bounds =
        running_error([&] { return run(data, at::kDouble, {}); }, rounding_model(at::kFloat, seed));
    const auto worst = [&](const Order& order, Bug bug) {
      const ErrorRatio ratio = error_ratio(bounds, run(data, at::kFloat, order, bug));
      return std::max(ratio.element, ratio.norm);
    };
    EXPECT_GT(worst({1, false}, Bug::Scaled), 2) << data.name << " seed " << seed;
    EXPECT_GT(worst({1, false}, Bug::BiasRow), 2) << data.name << " seed " << seed;
    if (data.divisible) {
      EXPECT_GT(worst({8, false}, Bug::LostMicrobatch), 2) << data.name << " seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Calibration, ::testing::Values(0, 1, 2));

}  // namespace
}  // namespace plumbline::reference
