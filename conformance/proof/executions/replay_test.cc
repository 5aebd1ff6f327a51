#include "conformance/proof/executions/replay.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/relu.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include "conformance/proof/executions/unsplit_run.h"
#include "conformance/proof/shapes/hollow_memory.h"
#include "conformance/proof/shapes/shape_run.h"

namespace plumbline::proof {
namespace {

constexpr int64_t kFeatures = 1 << 18;

/// relu(linear(x)) * f, where f is 1, or the number of the call.
class CountedLayer : public torch::nn::Module {
 public:
  explicit CountedLayer(bool counts)
      : counts_(counts), weight_(register_parameter("weight", hollow_tensor({kFeatures, kFeatures}, at::kFloat))) {}
  at::Tensor forward(const at::Tensor& x) {
    const int factor = counts_ ? ++calls_ : 1;
    return at::mul(at::relu(at::linear(x, weight_)), factor);
  }

 private:
  bool counts_;
  int calls_ = 0;
  at::Tensor weight_;
};

struct Ran {
  RankTerms of_run;
  std::vector<Term> outputs = {};  ///< by micro-batch, in order
  int most_times = 0;              ///< how often a term of the run was computed
};

/// The unsplit run of a step over `rows` rows, on hollow tensors.
Ran run(int rows, int microbatches, bool counts) {
  const std::string name = counts ? "hollow-counting-layer" : "hollow-layer";
  models::add_model(
      name,
      [counts](reference::Dtype, uint64_t) {
        const auto module = std::make_shared<CountedLayer>(counts);
        models::Model model;
        model.module = module;
        model.forward = [module](const std::vector<at::Tensor>& in) {
          return std::vector<at::Tensor>{module->forward(in[0])};
        };
        model.input_names = {"x"};
        model.input_chunks.resize(1);
        return model;
      },
      [](reference::Dtype, int count, uint64_t, int) {
        return models::Batch{.inputs = {hollow_tensor({count, kFeatures}, at::kFloat)}, .targets = {}};
      });
  reference::Case c;
  c.id = c.model = name;
  c.loss = {.kind = LossKind::Sum, .reduction = Reduction::Sum};
  c.rows = rows;
  c.microbatches = microbatches;
  Terms terms;
  Occurrences occurrences(terms);
  ShapeRun shapes;
  Recorder recorder(terms, occurrences, -1, &shapes);
  reference::StageOrder order;
  for (int m = 0; m < microbatches; ++m) {
    order.forwards.push_back(m);
    order.backwards.push_back(m);
  }
  Ran ran{.of_run = run_unsplit(c, 1, {{order}}, recorder)};
  for (int m = 0; m < microbatches; ++m)
    ran.outputs.push_back(terms.at(ran.of_run.results.at("0/output/-/" + std::to_string(m) + "/0")));
  for (size_t number = 0; number < terms.numbers_end(); ++number)
    ran.most_times = std::max(ran.most_times, occurrences.times(number));
  return ran;
}

TEST(Replay, TwoMicrobatchesAreExecutedAndTheOthersMade) {
  const Ran two = run(4, 2, false), many = run(64, 32, false);
  // A micro-batch that is made: a narrow of the batch, an addition of its gradient, and copies of an output and a loss,
  // each of which is a detach and a clone.
  EXPECT_EQ(many.of_run.log.executed, two.of_run.log.executed + 30 * 6);
  EXPECT_EQ(many.of_run.results.size(), 32u + 32u + 2u);  // outputs, losses, a gradient, a parameter
  for (int m = 0; m < 32; ++m) EXPECT_EQ(many.outputs[m].op, "aten::mul.Scalar") << m;
  EXPECT_EQ(many.most_times, 32) << "the gradient from which each backward begins is one term";
}

TEST(Replay, AModelThatCountsItsCallsIsExecuted) {
  const Ran ran = run(8, 4, true);
  for (int m = 0; m < 4; ++m)
    EXPECT_NE(ran.outputs[m].attributes.find("other=" + std::to_string(m + 1)), std::string::npos)
        << ran.outputs[m].attributes;
}

TEST(Replay, MicrobatchesOfOtherSizesAreExecuted) {
  const Ran even = run(32, 8, false), uneven = run(33, 8, false);  // 5 rows, then 4
  EXPECT_GT(uneven.of_run.log.executed, even.of_run.log.executed);
  for (int m = 0; m < 8; ++m)
    EXPECT_EQ(uneven.outputs[m].attributes.find(m == 0 ? "f32[5," : "f32[4,"), 0u) << uneven.outputs[m].attributes;
}

}  // namespace
}  // namespace plumbline::proof
