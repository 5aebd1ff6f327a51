#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include "conformance/corpus/case_schedule.h"
#include "conformance/mutants/mutants.h"
#include "conformance/proof/prove.h"
#include "conformance/proof/shapes/hollow_memory.h"
#include "runtime/capture/call.h"

namespace plumbline::proof {
namespace {

/// Parameters of 16 TiB in all.
constexpr int64_t kWidth = 1 << 20;
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
        return models::Batch{.inputs = {hollow_tensor({rows, kWidth}, at::kFloat)}, .target = {}};
      });
  reference::Case c;
  c.id = c.model = "hollow-wide";
  c.loss = {.kind = LossKind::Sum, .reduction = Reduction::Mean};
  c.rows = 8;
  c.microbatches = 4;
  return c;
}

Proof prove_wide(const std::string& schedule, int ranks, const std::string& mutant = {}) {
  const reference::Case c = wide_case();
  ProofOptions options;
  options.schedule = conformance::case_schedule(c, {schedule, {}}, ranks);
  options.on_shapes = true;
  if (!mutant.empty()) options.fault = conformance::find_mutant(mutant).make;
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
  struct Planted {
    const char *mutant, *sentence;
  };
  for (const Planted& planted :
       {Planted{"drop-last-microbatch", "left out of a sum"},
        Planted{"added-in-reverse", "the same 4 addends are added in another order"},
        Planted{"divided-in-each-stage", "1/4 of the expected sum (stage 0)"}}) {
    const Proof proof = prove_wide("1f1b", 2, planted.mutant);
    EXPECT_EQ(proof.outcome, Outcome::Refuted) << planted.mutant;
    EXPECT_NE(proof.why.find(planted.sentence), std::string::npos) << planted.mutant << ": " << proof.why;
  }
}

}  // namespace
}  // namespace plumbline::proof
