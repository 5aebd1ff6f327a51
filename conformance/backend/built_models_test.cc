// What planning is told of the models: by the models themselves.
#include "conformance/backend/built_models.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/masked_select.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include "conformance/corpus/corpus.h"
#include "reference/models/zoo.h"
#include "runtime/capture/call.h"
#include "runtime/testing/refusal.h"

namespace plumbline::conformance {
namespace {

/// Two layers; how many values the second looks at depends on the data, in micro-batches of so many rows.
struct DependsOnData : torch::nn::Module {
  struct Layer : torch::nn::Module {
    explicit Layer(int64_t selecting_rows)
        : selecting_rows(selecting_rows), weight(register_parameter("weight", at::ones({4, 4}))) {}
    at::Tensor forward(const at::Tensor& x) {
      const at::Tensor y = at::linear(x, weight);
      return x.size(0) == selecting_rows ? y * at::masked_select(x, x > 0).sum() : y;
    }
    int64_t selecting_rows;
    at::Tensor weight;
  };
  explicit DependsOnData(int64_t selecting_rows)
      : first(register_module("first", std::make_shared<Layer>(0))),
        second(register_module("second", std::make_shared<Layer>(selecting_rows))) {}
  std::shared_ptr<Layer> first, second;
};

void add_depends_on_data(const std::string& name, int64_t selecting_rows) {
  models::add_model(
      name,
      [=](reference::Dtype, uint64_t) {
        models::Model model;
        const auto module = std::make_shared<DependsOnData>(selecting_rows);
        model.module = module;
        model.forward = [module](const std::vector<at::Tensor>& in) {
          return std::vector<at::Tensor>{capture::call(module->second, capture::call(module->first, in[0]))};
        };
        model.input_names = {"x"};
        model.input_chunks = {microbatch::ChunkSpec{}};
        model.split_points = {"second"};
        return model;
      },
      [](reference::Dtype, int rows, uint64_t, int) {
        return models::Batch{{at::ones({rows, 4})}, at::ones({rows, 4})};
      });
}

/// 7 rows are micro-batches of 3, 2 and 2: whichever shape cannot be traced, the case cannot run.
TEST(BuiltModels, ACaseThatCannotBeTracedIsUnsupportedWithItsStageAndItsCall) {
  reference::Case c = find_case("mlp");
  c.rows = 7;
  c.microbatches = 3;
  for (const int64_t selecting_rows : {3, 2}) {
    c.model = "depends-on-data-" + std::to_string(selecting_rows);
    add_depends_on_data(c.model, selecting_rows);
    const std::string why = built_models(1)->why_not_partitioned(c, 2, {"bytes"});
    for (const char* part : {"stage 1 has no joint graph", "masked_select", "run it without --remat"})
      testing::expect_part(why, part);
  }
  c.model = "depends-on-data-4";
  add_depends_on_data(c.model, 4);
  EXPECT_EQ(built_models(1)->why_not_partitioned(c, 2, {"bytes"}), "");
}

TEST(BuiltModels, OtherMicrobatchesAndOptionsHaveAnswersOfTheirOwn) {
  reference::Case c = find_case("mlp");
  c.rows = 7;
  c.model = "depends-on-data-7";
  add_depends_on_data(c.model, 7);
  const std::unique_ptr<ModelFacts> models = built_models(1);
  c.microbatches = 1;
  testing::expect_part(models->why_not_partitioned(c, 2, {"bytes"}), "masked_select");
  c.microbatches = 3;
  EXPECT_EQ(models->why_not_partitioned(c, 2, {"bytes"}), "");
  testing::expect_part(models->why_not_partitioned(c, 2, {"no-such-mode"}), "no-such-mode");
  EXPECT_NE(models->why_not_partitioned(c, 2, {"bytes", "no-such-policy"}), "");
}

TEST(BuiltModels, StagesBuffersAndEdgesAreTheModels) {
  const std::unique_ptr<ModelFacts> models = built_models(1);
  EXPECT_EQ(models->most_stages("mlp", reference::Dtype::F32), 16);
  EXPECT_FALSE(models->has_buffers(find_case("mlp")));
  EXPECT_TRUE(models->has_buffers(find_case("resnet-bn")));
  EXPECT_EQ(models->edges(find_case("mlp"), 4), schedule::chain_edges(4));
  EXPECT_NE(models->edges(find_case("exact-skip"), 4), schedule::chain_edges(4));
}

TEST(BuiltModels, AModelThatCannotBeMadeIsRefusedEachTime) {
  const std::unique_ptr<ModelFacts> models = built_models(1);
  for (int times = 0; times < 2; ++times)
    EXPECT_THROW(models->most_stages("no-such-model", reference::Dtype::F32), InputError);
  reference::Case c = find_case("mlp");
  c.rows = 0;
  for (int times = 0; times < 2; ++times) EXPECT_THROW(models->why_not_partitioned(c, 2, {"bytes"}), InputError);
}

TEST(BuiltModels, ALossThatDoesNotFitTheModelIsRefused) {
  const std::unique_ptr<ModelFacts> models = built_models(1);
  for (const char* id : {"exact-heads", "exact-two-heads", "mlp", "exact-mlp-sum"})
    EXPECT_EQ(testing::refusal([&] { models->require_loss(find_case(id)); }), "accepted") << id;
  reference::Case heads = find_case("exact-heads");
  heads.loss.kind = reference::LossKind::Sum;
  testing::expect_line(testing::refusal([&] { models->require_loss(heads); }),
                       "model: 'exact-heads' has several targets, but the loss of case exact-heads does not fit");
  reference::Case mlp = find_case("mlp");
  mlp.loss.auxiliary = reference::AuxiliaryLosses::Added;
  testing::expect_line(testing::refusal([&] { models->require_loss(mlp); }), "model: 'mlp' makes no auxiliary losses");
}

TEST(BuiltModels, CasesOfTheCorpusCanBePartitioned) {
  for (const char* id : {"exact-tied", "transformer-lm", "resnet-bn", "dropout", "frozen", "multi-io", "loss-inside"})
    EXPECT_EQ(built_models(1)->why_not_partitioned(find_case(id), 4, {"budget=0.25"}), "") << id;
}

}  // namespace
}  // namespace plumbline::conformance
