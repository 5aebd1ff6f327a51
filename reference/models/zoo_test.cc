#include "reference/models/zoo.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mse_loss.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "reference/models/parts/identity.h"
#include "reference/models/text.h"
#include "runtime/capture/call.h"
#include "runtime/error.h"
#include "runtime/split/module_pipe.h"
#include "runtime/testing/parameter_name.h"
#include "runtime/testing/refusal.h"

namespace plumbline::models {
namespace {

constexpr uint64_t seed = 11;

/// A loss suitable for the target.
at::Tensor loss_of(const at::Tensor& output, const at::Tensor& target) {
  if (!target.defined()) return output.sum();
  if (target.scalar_type() == at::kLong)
    return at::cross_entropy_loss(output.reshape({-1, output.size(-1)}), target.reshape({-1}));
  return at::mse_loss(output, target);
}

at::Tensor loss_of(const std::vector<at::Tensor>& outputs, const Targets& targets) {
  at::Tensor loss = loss_of(outputs[0], targets.defined() ? targets[0] : at::Tensor());
  for (size_t i = 1; i < targets.size(); ++i) loss = loss + loss_of(outputs[i], targets[i]);
  return loss;
}

class ZooModel : public ::testing::TestWithParam<std::string> {};

TEST_P(ZooModel, EveryUsedTrainableParameterGetsAGradient) {
  const Model model = make_model(GetParam(), reference::Dtype::F32, seed);
  const Batch batch = make_batch(GetParam(), reference::Dtype::F32, 4, seed, 0);
  const std::vector<at::Tensor> outputs = model.forward(batch.inputs);
  ASSERT_FALSE(outputs.empty());
  for (const at::Tensor& output : outputs)
    if (output.defined()) {
      EXPECT_TRUE(output.isfinite().all().item<bool>());
    }
  at::Tensor loss = loss_of(outputs, batch.targets);
  for (size_t i = outputs.size() - model.auxiliary_losses; i < outputs.size(); ++i) loss = loss + outputs[i];
  loss.backward();
  int64_t numbers = 0;
  for (const auto& parameter : model.module->named_parameters()) {
    const std::string& name = parameter.key();
    static const std::set<std::string> unused_names = {
        "gain.fc.weight", "table.fc.bias", "early.fc.weight", "left.fc.weight", "right.fc.weight", "late.fc.weight",
        "idle.fc.weight", "u0.fc.bias",    "v0.fc.bias",      "u1.fc.bias",     "v1.fc.bias",      "a0.fc.bias",
        "b0.fc.bias",     "c0.fc.bias",    "a1.fc.bias",      "b1.fc.bias",     "c1.fc.bias"};
    const bool unused = name.starts_with("aside") || name.starts_with("side.") || unused_names.contains(name);
    // not selected, or times zero
    const bool is_zero = name.starts_with("zeroed") || name.starts_with("expert") || name == "idle.fc.bias" ||
                         (GetParam() == "spiked" && name == "gain.fc.bias");
    numbers += parameter.value().numel();
    EXPECT_EQ(parameter.value().grad().defined(), parameter.value().requires_grad() && !unused) << name;
    if (parameter.value().grad().defined()) {
      EXPECT_TRUE(parameter.value().grad().isfinite().all().item<bool>()) << name;
      EXPECT_TRUE(is_zero || parameter.value().grad().ne(0).any().item<bool>()) << name;
    }
  }
  EXPECT_GT(numbers, 0);
  EXPECT_LT(numbers, 60000);
}

TEST_P(ZooModel, InputsAreNamedAndDivided) {
  const Model model = make_model(GetParam(), reference::Dtype::F32, seed);
  const Batch batch = make_batch(GetParam(), reference::Dtype::F32, 6, seed, 0);
  ASSERT_EQ(model.input_names.size(), batch.inputs.size());
  ASSERT_EQ(model.input_chunks.size(), batch.inputs.size());
  EXPECT_EQ(std::set<std::string>(model.input_names.begin(), model.input_names.end()).size(), batch.inputs.size());
  for (size_t i = 0; i < batch.inputs.size(); ++i)
    if (!model.input_chunks[i].replicate && batch.inputs[i].defined()) {
      EXPECT_EQ(batch.inputs[i].size(model.input_chunks[i].dim), 6);
    }
  for (const at::Tensor& target : batch.targets) EXPECT_EQ(target.size(model.target_chunk.dim), 6);
}

/// Records the names of the entered modules in order.
class Journal : public capture::ModuleObserver {
 public:
  explicit Journal(const torch::nn::Module& root) {
    for (const auto& item : root.named_modules()) names_[item.value().get()] = item.key();
  }
  void enter(const torch::nn::Module& module) override { entered.push_back(names_.at(&module)); }
  void leave(const torch::nn::Module&) override {}
  std::vector<std::string> entered;

 private:
  std::map<const torch::nn::Module*, std::string> names_;
};

TEST_P(ZooModel, SplitPointsAreEnteredOnceInTheirOrder) {
  const Model model = make_model(GetParam(), reference::Dtype::F32, seed);
  const Batch batch = make_batch(GetParam(), reference::Dtype::F32, 2, seed, 0);
  Journal journal(*model.module);
  {
    const capture::ModuleObserverScope scope(&journal);
    model.forward(batch.inputs);
  }
  EXPECT_GE(model.split_points.size(), 7u);
  std::vector<std::string> met;
  const std::set<std::string> points(model.split_points.begin(), model.split_points.end());
  for (const std::string& name : journal.entered)
    if (points.contains(name)) met.push_back(name);
  EXPECT_EQ(met, model.split_points);
  ASSERT_FALSE(journal.entered.empty());
  EXPECT_NE(journal.entered.front(), model.split_points.front()) << "the first stage would be empty";
}

TEST_P(ZooModel, FinerPointsMakeSixteenStagesAndLeaveTheOthersWhereTheyWere) {
  const Model model = make_model(GetParam(), reference::Dtype::F32, seed);
  EXPECT_EQ(most_stages(model), 16);
  EXPECT_EQ(stage_points(model, 1).size(), 0u);
  for (int stages : {2, 4, 8})  // every fourth, every second, or each of eight parts
    for (int s = 1; s < stages; ++s) {
      const split::SplitPoint point = stage_points(model, stages)[s - 1];
      EXPECT_EQ(point.module, model.split_points[s * 8 / stages - 1]);
      EXPECT_EQ(point.where, split::SplitPoint::Where::Beginning);
    }
  const Batch batch = make_batch(GetParam(), reference::Dtype::F32, 2, seed, 0);
  for (int stages : {9, 12, 16}) {
    split::SplitOptions options;
    options.points = stage_points(model, stages);
    const split::Pipe pipe =
        split::make_pipe({model.module.get(), model.forward, model.input_names}, batch.inputs, true, options);
    EXPECT_EQ(pipe.num_stages(), stages);
    for (const split::Stage& stage : pipe.stages) EXPECT_FALSE(stage.graph.nodes.empty());
  }
  EXPECT_THROW(stage_points(model, 17), InputError);
  EXPECT_THROW(stage_points(model, 0), InputError);
}

TEST_P(ZooModel, SameSeedSameBytesOtherSeedOthers) {
  const Model first = make_model(GetParam(), reference::Dtype::F32, seed),
              again = make_model(GetParam(), reference::Dtype::F32, seed);
  const Model other = make_model(GetParam(), reference::Dtype::F32, seed + 1);
  const auto a = first.module->named_parameters(), b = again.module->named_parameters();
  const auto c = other.module->named_parameters();
  ASSERT_EQ(a.size(), b.size());
  bool differs = false;
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].key(), b[i].key());
    EXPECT_TRUE(at::equal(a[i].value(), b[i].value())) << a[i].key();
    differs = differs || !at::equal(a[i].value(), c[i].value());
  }
  EXPECT_TRUE(differs);
}

TEST_P(ZooModel, BatchesRepeatByStepAndDifferBetweenSteps) {
  const Batch zero = make_batch(GetParam(), reference::Dtype::F32, 4, seed, 0),
              again = make_batch(GetParam(), reference::Dtype::F32, 4, seed, 0);
  const Batch one = make_batch(GetParam(), reference::Dtype::F32, 4, seed, 1);
  for (size_t i = 0; i < zero.inputs.size(); ++i) {
    if (!zero.inputs[i].defined() || !one.inputs[i].defined()) continue;
    EXPECT_TRUE(at::equal(zero.inputs[i], again.inputs[i]));
    EXPECT_FALSE(at::equal(zero.inputs[i], one.inputs[i])) << "input " << i;
  }
  for (size_t i = 0; i < zero.targets.size(); ++i) {
    EXPECT_TRUE(at::equal(zero.targets[i], again.targets[i]));
    EXPECT_FALSE(at::equal(zero.targets[i], one.targets[i])) << "target " << i;
  }
}

TEST_P(ZooModel, MakingItLeavesTorchsGeneratorAlone) {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  const at::Tensor before = generator.get_state().clone();
  make_model(GetParam(), reference::Dtype::F32, seed);
  make_batch(GetParam(), reference::Dtype::F32, 4, seed, 0);
  EXPECT_TRUE(at::equal(before, generator.get_state()));
}

TEST_P(ZooModel, DoubleHoldsTheSameModel) {
  if (GetParam().find("mixed-") != std::string::npos) return;  // several dtypes: one rounds the other's values
  if (is_polynomial_model(GetParam())) return;                 // drawn from more numbers in float64
  const Model narrow = make_model(GetParam(), reference::Dtype::F32, seed),
              wide = make_model(GetParam(), reference::Dtype::F64, seed);
  const auto a = narrow.module->named_parameters(), b = wide.module->named_parameters();
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(b[i].value().scalar_type(), at::kDouble);
    EXPECT_TRUE(at::equal(a[i].value(), b[i].value().to(at::kFloat))) << a[i].key();
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooModel, ::testing::ValuesIn(model_names()), testing::ParameterName());

TEST(Zoo, UnknownNamesAndBatchesAreRefusedInOneLine) {
  const std::string text = testing::refusal([] { make_model("mpl", reference::Dtype::F32, seed); });
  testing::expect_part(text, "'mpl'");
  testing::expect_line(text, "", "transformer-lm");
  EXPECT_THROW(make_batch("mpl", reference::Dtype::F32, 4, seed, 0), InputError);
  EXPECT_THROW(make_batch("mlp", reference::Dtype::F32, 0, seed, 0), InputError);
  EXPECT_THROW(make_model("exact-tied", reference::Dtype::BF16, seed), InputError);
  EXPECT_NO_THROW(make_model("exact-mlp", reference::Dtype::BF16, seed));
}

reference::Case case_with(const std::string& model, int data, reference::Dtype dtype = reference::Dtype::F32) {
  reference::Case c;
  c.model = model;
  c.dtype = dtype;
  c.data = data;
  return c;
}

TEST(Zoo, SeveralTargetsTakeALossThatComparesThem) {
  const Model model = make_model("exact-heads", reference::Dtype::F32, seed);
  reference::Case c = case_with("exact-heads", 0);
  c.id = "mine";
  testing::expect_line(testing::refusal([&] { case_split(c, model, 2); }),
                       "model: 'exact-heads' has several targets, but the loss of case mine does not fit", "mse");
  c.loss.kind = reference::LossKind::Mse;
  EXPECT_EQ(case_split(c, model, 2).loss_outputs, (std::vector<int>{0, 1, 2}));
  c.loss.auxiliary = reference::AuxiliaryLosses::Added;
  EXPECT_THROW(case_split(c, model, 2), InputError);
}

TEST(Zoo, ACaseMayHaveItsOwnDraw) {
  for (const char* name : {"mlp", "exact-mlp", "exact-tied", "exact-dimensions"}) {
    const Batch usual = make_batch(name, reference::Dtype::F32, 8, seed, 1),
                of_case = make_batch(case_with(name, 0), 8, seed, 1), one = make_batch(case_with(name, 1), 8, seed, 1),
                again = make_batch(case_with(name, 1), 8, seed, 1), two = make_batch(case_with(name, 2), 8, seed, 1);
    for (size_t i = 0; i < usual.inputs.size(); ++i) {
      EXPECT_TRUE(at::equal(of_case.inputs[i], usual.inputs[i])) << name << " input " << i;
      EXPECT_TRUE(at::equal(again.inputs[i], one.inputs[i])) << name << " input " << i;
      EXPECT_FALSE(at::equal(one.inputs[i], usual.inputs[i])) << name << " input " << i;
      EXPECT_FALSE(at::equal(two.inputs[i], one.inputs[i])) << name << " input " << i;
    }
    if (usual.targets.defined()) {
      EXPECT_FALSE(at::equal(one.targets.one(), usual.targets.one())) << name;
    }
  }
}

/// The largest element of each row of the first input, in steps that are even: no odd element becomes even.
TEST(Zoo, RowsOfItsOwnExactDrawDifferInSize) {
  for (const auto& [name, dim, dtype, step] : {std::tuple{"exact-mlp", 0, reference::Dtype::F16, 8},
                                               {"exact-mlp", 0, reference::Dtype::BF16, 2},
                                               {"exact-encoder-decoder", 1, reference::Dtype::F32, 8},
                                               {"exact-convolution", 0, reference::Dtype::F16, 8}}) {
    const Batch batch = make_batch(case_with(name, 3, dtype), 4, seed, 0);
    const at::Tensor sizes = batch.inputs[0].to(at::kLong).abs();
    for (int64_t row = 0; row < 4; ++row) {
      const at::Tensor of_row = sizes.select(dim, row);
      EXPECT_EQ(of_row.max().item<int64_t>(), step * row + 1) << name;
      EXPECT_EQ(of_row.sum().item<int64_t>(), of_row.numel() + step * row) << name;
    }
  }
}

TEST(Zoo, HeadIsTiedToTheEmbedding) {
  for (const char* name : {"transformer-lm", "exact-tied"}) {
    const Model model = make_model(name, reference::Dtype::F32, seed);
    const Batch batch = make_batch(name, reference::Dtype::F32, 2, seed, 0);
    std::set<const void*> objects;
    for (const auto& parameter : model.module->named_parameters()) {
      objects.insert(parameter.value().unsafeGetTensorImpl());
      EXPECT_EQ(parameter.key().find("head"), std::string::npos);
    }
    EXPECT_EQ(objects.size(), model.module->named_parameters().size());
    // The head uses the table too, so entries that no token looks up also have a gradient.
    loss_of(model.forward(batch.inputs), batch.targets).backward();
    const at::Tensor table = model.module->named_parameters()["tok.weight"].grad();
    EXPECT_TRUE(table.ne(0).any(1).all().item<bool>()) << name;
  }
}

TEST(Zoo, FrozenAreTheFirstLayerTwoInTheMiddleAndOneBias) {
  const std::set<std::string> frozen = {"layers.0.fc.weight", "layers.0.fc.bias",   "layers.4.fc.weight",
                                        "layers.4.fc.bias",   "layers.5.fc.weight", "layers.5.fc.bias",
                                        "layers.6.fc.bias"};
  for (const char* name : {"mlp-frozen", "exact-frozen"}) {
    const Model model = make_model(name, reference::Dtype::F32, seed);
    for (const auto& parameter : model.module->named_parameters())
      EXPECT_EQ(parameter.value().requires_grad(), !frozen.contains(parameter.key())) << name << " " << parameter.key();
  }
}

TEST(Zoo, LanguageModelReadsTheText) {
  const Batch batch = make_batch("transformer-lm", reference::Dtype::F32, 5, seed, 3);
  for (int64_t row = 0; row < 5; ++row) {
    std::string read, next;
    for (int64_t i = 0; i < 16; ++i) {
      read.push_back(static_cast<char>(batch.inputs[0][row][i].item<int64_t>()));
      next.push_back(static_cast<char>(batch.targets.one()[row][i].item<int64_t>()));
    }
    EXPECT_NE(models::gettysburg_address().find(read), std::string_view::npos) << read;
    EXPECT_EQ(read.substr(1), next.substr(0, 15));
  }
}

TEST(Zoo, RunningStatisticsMoveInTrainingOnly) {
  const Model model = make_model("resnet-bn", reference::Dtype::BF16, seed);
  const Batch batch = make_batch("resnet-bn", reference::Dtype::BF16, 4, seed, 0);
  const auto buffers = model.module->named_buffers();
  ASSERT_EQ(buffers.size(), 8u * 2u * 3u);
  EXPECT_EQ(buffers["blocks.0.bn1.num_batches_tracked"].scalar_type(), at::kLong);
  EXPECT_EQ(buffers["blocks.0.bn1.running_mean"].scalar_type(), at::kBFloat16);
  model.forward(batch.inputs);
  EXPECT_EQ(buffers["blocks.7.bn2.num_batches_tracked"].item<int64_t>(), 1);
  const at::Tensor mean = buffers["blocks.0.bn1.running_mean"].clone();
  EXPECT_TRUE(mean.ne(0).any().item<bool>());
  model.module->eval();
  model.forward(batch.inputs);
  EXPECT_EQ(buffers["blocks.7.bn2.num_batches_tracked"].item<int64_t>(), 1);
  EXPECT_TRUE(at::equal(mean, buffers["blocks.0.bn1.running_mean"]));
}

TEST(Zoo, DropoutDropsInTrainingOnly) {
  const Model model = make_model("mlp-dropout", reference::Dtype::F32, seed);
  const Batch batch = make_batch("mlp-dropout", reference::Dtype::F32, 8, seed, 0);
  const at::Tensor output = model.forward(batch.inputs)[0];
  const double dropped = output.eq(0).to(at::kDouble).mean().item<double>();
  EXPECT_NEAR(dropped, 0.25, 0.12);  // 256 draws: the deviation is 0.027
  model.module->eval();
  EXPECT_TRUE(at::equal(model.forward(batch.inputs)[0], model.forward(batch.inputs)[0]));
}

TEST(Zoo, TargetsOfTheLastRowsAreIgnored) {
  reference::Case c;
  c.model = "transformer-lm";
  c.loss = {.kind = reference::LossKind::CrossEntropy, .ignores_targets = true, .ignored_rows = 2};
  const at::Tensor ignored = make_batch(c, 8, seed, 0).targets.one().eq(reference::kIgnoredTarget);
  EXPECT_TRUE(ignored.narrow(0, 6, 2).all().item<bool>());
  EXPECT_FALSE(ignored.narrow(0, 0, 6).all(1).any().item<bool>()) << "each other row has a target";
}

/// Twenty steps of gradient descent with momentum, like the corpus's training cases.
TEST(Zoo, TrainingLowersTheLoss) {
  for (const char* name : {"mlp", "transformer-lm"}) {
    const Model model = make_model(name, reference::Dtype::F32, seed);
    const Batch held_out = make_batch(name, reference::Dtype::F32, 16, seed, 1000);
    const auto evaluate = [&] {
      const c10::NoGradGuard no_grad;
      return loss_of(model.forward(held_out.inputs), held_out.targets).item<double>();
    };
    const double before = evaluate();
    std::vector<at::Tensor> parameters = model.module->parameters(), momenta(parameters.size());
    for (int step = 0; step < 20; ++step) {
      const Batch batch = make_batch(name, reference::Dtype::F32, 8, seed, step);
      for (at::Tensor& parameter : parameters) parameter.mutable_grad() = at::Tensor();
      loss_of(model.forward(batch.inputs), batch.targets).backward();
      const c10::NoGradGuard no_grad;
      for (size_t i = 0; i < parameters.size(); ++i) {
        momenta[i] = momenta[i].defined() ? momenta[i] * 0.9 + parameters[i].grad() : parameters[i].grad().clone();
        parameters[i].sub_(momenta[i] * 0.05);
      }
    }
    EXPECT_LT(evaluate(), 0.97 * before) << name;
    RecordProperty(std::string(name) + " before", std::to_string(before));
    RecordProperty(std::string(name) + " after", std::to_string(evaluate()));
  }
}

}  // namespace
}  // namespace plumbline::models
