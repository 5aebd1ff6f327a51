#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/relu.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include "conformance/corpus/case_schedule.h"
#include "conformance/proof/prove.h"
#include "conformance/proof/shapes/hollow_memory.h"
#include "runtime/capture/call.h"
#include "runtime/engine/stage/forwarding_runner.h"

namespace plumbline::proof {
namespace {

/// Parameters of 1 TiB in all.
constexpr int64_t kWidth = 1 << 18;
constexpr int kLayers = 4;

class Layer : public torch::nn::Module {
 public:
  Layer() : weight_(register_parameter("weight", hollow_tensor({kWidth, kWidth}, at::kFloat))) {}
  at::Tensor forward(const at::Tensor& x) { return at::relu(at::linear(x, weight_)); }

 private:
  at::Tensor weight_;
};

class Wide : public torch::nn::Module {
 public:
  Wide() {
    for (int i = 0; i < kLayers; ++i)
      layers_.push_back(register_module("layer" + std::to_string(i), std::make_shared<Layer>()));
  }
  at::Tensor forward(at::Tensor x) {
    for (std::shared_ptr<Layer>& layer : layers_) x = capture::call(layer, x);
    return x;
  }

 private:
  std::vector<std::shared_ptr<Layer>> layers_;
};

reference::Case wide_case() {
  models::add_model(
      "hollow-wide",
      [](reference::Dtype, uint64_t) {
        const auto module = std::make_shared<Wide>();
        models::Model model;
        model.module = module;
        model.forward = [module](const std::vector<at::Tensor>& in) {
          return std::vector<at::Tensor>{capture::call(module, in[0])};
        };
        model.input_names = {"x"};
        model.input_chunks.resize(1);
        for (int i = 1; i < kLayers; ++i) model.split_points.push_back("layer" + std::to_string(i));
        return model;
      },
      [](reference::Dtype, int rows, uint64_t, int) {
        return models::Batch{.inputs = {hollow_tensor({rows, kWidth}, at::kFloat)}, .targets = {}};
      });
  reference::Case c;
  c.id = c.model = "hollow-wide";
  c.loss = {.kind = LossKind::Sum, .reduction = Reduction::Mean};
  c.rows = 8;
  c.microbatches = 4;
  return c;
}

/// Micro-batch 2 of the first stage computes from the input of micro-batch 0.
class TakesAnothersInput : public engine::ForwardingRunner {
 public:
  using ForwardingRunner::ForwardingRunner;
  void forward(int microbatch, std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs) override {
    if (microbatch == 0) first_.assign(inputs.begin(), inputs.end());
    inner_->forward(microbatch, microbatch == 2 ? std::span<const at::Tensor>(first_) : inputs, outputs);
  }

 private:
  std::vector<at::Tensor> first_;
};

/// After the backward of micro-batch 1 the gradients of the first stage are doubled.
class Doubles : public engine::ForwardingRunner {
 public:
  Doubles(std::unique_ptr<engine::StageRunner> inner, const split::StageState& state)
      : ForwardingRunner(std::move(inner)), state_(state) {}
  void backward(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) override {
    inner_->backward(microbatch, roots, root_grads, inputs, input_grads);
    const c10::NoGradGuard no_grad;
    for (const auto& [name, parameter] : state_.parameters)
      if (microbatch == 1) parameter.mutable_grad() = at::mul(parameter.grad(), 2);
  }

 private:
  const split::StageState& state_;
};

template <class Wrap>
conformance::Fault in_first_stage(const Wrap& wrap) {
  conformance::Fault fault;
  fault.stage = [wrap](int stage, const split::StageState& state, std::unique_ptr<engine::StageRunner> inner) {
    return stage == 0 ? wrap(state, std::move(inner)) : std::move(inner);
  };
  return fault;
}

conformance::Fault takes_anothers_input(const conformance::FaultSite&) {
  return in_first_stage([](const split::StageState&, std::unique_ptr<engine::StageRunner> inner) {
    return std::unique_ptr<engine::StageRunner>(std::make_unique<TakesAnothersInput>(std::move(inner)));
  });
}

conformance::Fault doubles(const conformance::FaultSite&) {
  return in_first_stage([](const split::StageState& state, std::unique_ptr<engine::StageRunner> inner) {
    return std::unique_ptr<engine::StageRunner>(std::make_unique<Doubles>(std::move(inner), state));
  });
}

using Make = std::function<conformance::Fault(const conformance::FaultSite&)>;

Proof prove_wide(const std::string& schedule, int ranks, const Make& fault = {}) {
  const reference::Case c = wide_case();
  ProofOptions options;
  options.schedule = conformance::case_schedule(c, {schedule, {}}, ranks);
  options.on_shapes = true;
  options.fault = fault;
  return prove(c, options);
}

TEST(ProveOnShapes, AModelThatNoMachineHolds) {
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1", "interleaved-1f1b"}) {
    const Proof proof = prove_wide(schedule, 2);
    EXPECT_EQ(proof.outcome, Outcome::Proven) << schedule << ": " << proof.why;
    EXPECT_EQ(proof.results.size(), 4u + 4u + kLayers + kLayers) << schedule;  // outputs, losses, gradients, parameters
  }
}

TEST(ProveOnShapes, FaultsAreRefutedWithTheirPlace) {
  const Proof input = prove_wide("1f1b", 2, &takes_anothers_input);
  EXPECT_EQ(input.outcome, Outcome::Refuted);
  EXPECT_EQ(input.why.find("output 0 of micro-batch 2"), 0u) << input.why;
  EXPECT_NE(input.why.find("found elements 0 to 524287 of 2097152 of input 0"), std::string::npos) << input.why;
  const Proof gradient = prove_wide("1f1b", 2, &doubles);
  EXPECT_EQ(gradient.outcome, Outcome::Refuted);
  EXPECT_NE(gradient.why.find("stage 0, micro-batch 1 (B)"), std::string::npos) << gradient.why;
}

}  // namespace
}  // namespace plumbline::proof
