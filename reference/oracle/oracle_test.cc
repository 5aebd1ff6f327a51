// Compares the oracles with each other and with finite differences: a wrong oracle proves nothing.
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <cmath>

#include "reference/loss.h"
#include "reference/models/zoo.h"
#include "reference/oracle/detached_run.h"
#include "reference/oracle/whole_model.h"
#include "runtime/error.h"
#include "runtime/split/module_pipe.h"

namespace plumbline::reference {
namespace {

constexpr uint64_t kSeed = 11;

Case make_case(const std::string& model, LossKind kind, Reduction reduction, int rows, int microbatches) {
  Case c;
  c.id = model;
  c.model = model;
  c.truth = Truth::SameOrder;
  c.rows = rows;
  c.microbatches = microbatches;
  c.loss = {kind, reduction};
  return c;
}

std::vector<int> ascending(int count) {
  std::vector<int> order;
  for (int m = 0; m < count; ++m) order.push_back(m);
  return order;
}

/// One copy of every stage: forwards ascending, backwards in the given order.
StageOrders orders(int stages, const std::vector<int>& backwards) {
  const StageOrder order{ascending(static_cast<int>(backwards.size())), backwards};
  return StageOrders(stages, std::vector<StageOrder>{order});
}

/// Compares the results that both have; returns their number.
int expect_same_bits(const Results& a, const Results& b, const std::string& what) {
  int common = 0;
  for (const auto& [key, tensor] : a) {
    const auto it = b.find(key);
    if (it == b.end()) continue;
    ++common;
    EXPECT_TRUE(tensor.equal(it->second)) << what << ": " << key;
  }
  return common;
}

TEST(Oracle, DetachedStagesEqualTheWholeModelBitForBit) {
  for (const char* model : {"mlp", "mlp-frozen", "resnet-bn", "mlp-dropout"}) {
    const Case c = make_case(model, LossKind::CrossEntropy, Reduction::Mean, 8, 4);
    Case fitted = c;
    const models::Batch batch = models::make_batch(model, Dtype::F32, 8, kSeed, 0);
    if (batch.targets.defined() && batch.targets.one().is_floating_point()) fitted.loss.kind = LossKind::Mse;
    if (!batch.targets.defined()) fitted.loss.kind = LossKind::Sum;
    for (int stages : {1, 2, 4, 8, 11, 16}) {
      const Results detached = run_detached(fitted, kSeed, orders(stages, ascending(4)));
      WholeModelOptions options;
      options.stages = stages;
      const Results whole = run_whole_model(fitted, kSeed, options);
      EXPECT_GE(expect_same_bits(whole, detached, std::string(model) + " in " + std::to_string(stages)), 20);
      for (const auto& [key, tensor] : whole) EXPECT_TRUE(detached.contains(key)) << key;
    }
  }
}

TEST(Oracle, OrderOfBackwardsIsTheOrderOfAccumulation) {
  // Real numbers: a different summation order gives different bits, and the detached run follows the given order.
  const Case c = make_case("mlp", LossKind::Sum, Reduction::Sum, 8, 4);
  const Results up = run_detached(c, kSeed, orders(2, {0, 1, 2, 3}));
  const Results down = run_detached(c, kSeed, orders(2, {3, 2, 1, 0}));
  int different = 0;
  for (const auto& [key, tensor] : up)
    if (parse_result_key(key).kind == ResultKind::Grad) different += !tensor.equal(down.at(key));
  EXPECT_GT(different, 0);
  // By hand for one parameter: the partial result after the first backward is that micro-batch's gradient.
  const ResultKey alone{0, ResultKind::Partial, 0, 3, ""};
  for (const auto& [key, tensor] : down) {
    const ResultKey parsed = parse_result_key(key);
    if (parsed.kind != ResultKind::Partial || parsed.microbatch != 3) continue;
    ResultKey third = parsed, last = parsed;
    third.microbatch = 2, last.microbatch = 3;
    const at::Tensor sum_up = up.at(to_string(last)), before = up.at(to_string(third));
    EXPECT_TRUE(sum_up.equal(before + tensor)) << key;
  }
}

TEST(Oracle, ExactModelsGiveTheSameNumbersHoweverTheyAreCut) {
  for (const char* model : {"exact-mlp", "exact-tied", "exact-skip", "exact-wide"}) {
    const Case c = make_case(model, LossKind::Sum, Reduction::Sum, 8, 4);
    WholeModelOptions at_once;
    at_once.by_microbatch = false;
    const Results whole = run_whole_model(c, kSeed, at_once);
    for (int stages : {1, 3, 8, 16}) {
      const Results detached = run_detached(c, kSeed, orders(stages, {2, 0, 3, 1}));
      EXPECT_GE(expect_same_bits(whole, detached, std::string(model) + " in " + std::to_string(stages)), 8);
    }
  }
}

TEST(Oracle, GradientsOfTheWholeModelAgreeWithFiniteDifferences) {
  Case c = make_case("mlp", LossKind::Mse, Reduction::Mean, 6, 4);  // uneven: 2, 2, 1, 1
  const models::Batch probe = models::make_batch("mlp", Dtype::F32, 6, kSeed, 0);
  if (!probe.targets.defined())
    c.loss.kind = LossKind::Sum;
  else if (!probe.targets.one().is_floating_point())
    c.loss.kind = LossKind::CrossEntropy;
  WholeModelOptions options;
  options.dtype = Dtype::F64;
  const Results results = run_whole_model(c, kSeed, options);
  // The same loss, computed on the whole batch at once.
  const models::Model model = models::make_model("mlp", Dtype::F32, kSeed);
  model.module->to(at::kDouble);
  const models::Batch batch = models::make_batch("mlp", Dtype::F32, 6, kSeed, 0);
  std::vector<at::Tensor> inputs;
  for (const at::Tensor& input : batch.inputs)
    inputs.push_back(input.is_floating_point() ? input.to(at::kDouble) : input);
  const Targets targets = batch.targets.map(
      [](const at::Tensor& target) { return target.is_floating_point() ? target.to(at::kDouble) : target; });
  const auto loss = [&] { return compute_loss(c.loss, model.forward(inputs), targets).item<double>(); };
  const c10::NoGradGuard no_grad;
  int checked = 0;
  for (const auto& item : model.module->named_parameters()) {
    at::Tensor flat = item.value().view(-1);
    const at::Tensor grad = results.at("0/grad/-/-/" + item.key()).view(-1);
    for (int64_t i = 0; i < flat.numel(); i += 1 + flat.numel() / 3) {
      const double before = flat[i].item<double>();
      // Central difference: the error is h^2 f'''/6 + eps |f| / h; with h = 1e-4 and smooth layers below 1e-7.
      const double h = 1e-4;
      flat[i].fill_(before + h);
      const double above = loss();
      flat[i].fill_(before - h);
      const double below = loss();
      flat[i].fill_(before);
      EXPECT_NEAR(grad[i].item<double>(), (above - below) / (2 * h), 1e-7) << item.key() << " element " << i;
      ++checked;
    }
  }
  EXPECT_GE(checked, 32);
}

// A different order for each stage. No list of F and whole B with these orders could be executed: stage 1 would run the
// backward of micro-batch 0 last, but stage 0 needs its gradient first.
TEST(Oracle, EveryStageMayHaveItsOwnOrder) {
  const Case exact = make_case("exact-mlp", LossKind::Sum, Reduction::Sum, 8, 4);
  StageOrders mixed = orders(3, {0, 1, 2, 3});
  mixed[1][0].backwards = {3, 2, 1, 0};
  mixed[2][0].backwards = {1, 3, 0, 2};
  const Results whole = run_whole_model(exact, kSeed, {});
  EXPECT_GE(expect_same_bits(whole, run_detached(exact, kSeed, mixed), "mixed orders"), 8);

  // With real numbers the sums of a stage depend only on that stage's order.
  const Case real = make_case("mlp", LossKind::Sum, Reduction::Sum, 8, 4);
  const Results results = run_detached(real, kSeed, mixed);
  int compared = 0;
  for (int stage = 0; stage < 3; ++stage) {
    const Results uniform = run_detached(real, kSeed, orders(3, mixed[stage][0].backwards));
    for (const auto& [key, tensor] : uniform) {
      const ResultKey parsed = parse_result_key(key);
      if (parsed.kind != ResultKind::Partial || parsed.stage != stage) continue;
      EXPECT_TRUE(tensor.equal(results.at(key))) << key;
      ++compared;
    }
  }
  EXPECT_GE(compared, 24);
}

// Two replicas share the micro-batches. Each accumulates in its order, and the accumulated gradients are summed at the
// end: the oracle runs each replica's micro-batches as a separate batch, and does one addition.
TEST(Oracle, CopiesOfAStageAccumulateApartAndAreSummed) {
  const std::vector<StageOrder> halves = {{{0, 2}, {2, 0}}, {{1, 3}, {1, 3}}};
  const Case real = make_case("mlp", LossKind::Sum, Reduction::Sum, 8, 4);
  Case undivided = real;
  undivided.division = Division::Nobody;
  const Results both = run_detached(undivided, kSeed, StageOrders(2, halves));
  int grads = 0;
  for (const auto& [key, tensor] : both) {
    ResultKey parsed = parse_result_key(key);
    if (parsed.kind != ResultKind::Grad) continue;
    parsed.kind = ResultKind::Partial;
    parsed.stage = 0, parsed.microbatch = 0;
    if (!both.contains(to_string(parsed))) parsed.stage = 1;
    const at::Tensor even = both.at(to_string(parsed));
    parsed.microbatch = 3;
    EXPECT_TRUE(tensor.equal(even + both.at(to_string(parsed)))) << key;
    ++grads;
  }
  EXPECT_EQ(grads, 16);
  // Within a copy: micro-batch 0 comes after 2; the first micro-batch of each copy starts from nothing.
  const Results alone = run_detached(undivided, kSeed, orders(2, {2, 0, 1, 3}));
  const Results other = run_detached(undivided, kSeed, orders(2, {1, 3, 2, 0}));
  int partials = 0;
  for (const auto& [key, tensor] : both) {
    const ResultKey parsed = parse_result_key(key);
    if (parsed.kind != ResultKind::Partial) continue;
    EXPECT_TRUE(tensor.equal((parsed.microbatch % 2 == 0 ? alone : other).at(key))) << key;
    ++partials;
  }
  EXPECT_EQ(partials, 64);

  // For a parameter that two stages share, the four sums are added one by one, by stage and then by copy.
  Case tied = make_case("transformer-lm", LossKind::CrossEntropy, Reduction::Mean, 8, 4);
  tied.division = Division::Nobody;
  const Results shared = run_detached(tied, kSeed, StageOrders(2, halves));
  const auto part = [&](int stage, int microbatch) {
    return shared.at(to_string(ResultKey{0, ResultKind::Partial, stage, microbatch, "tok.weight"}));
  };
  EXPECT_TRUE(shared.at("0/grad/-/-/tok.weight").equal(((part(0, 0) + part(0, 3)) + part(1, 0)) + part(1, 3)));
}

/// In four stages of two parts each.
split::Pipe in_four_stages(const std::string& name, AuxiliaryLosses auxiliary) {
  Case c;
  c.model = name;
  c.loss.auxiliary = auxiliary;
  const models::Model model = models::make_model(name, Dtype::F32, 1);
  const models::Batch batch = models::make_batch(name, Dtype::F32, 4, 1, 0);
  return split::make_pipe({model.module.get(), model.forward, model.input_names}, batch.inputs, /*training=*/true,
                          models::case_split(c, model, 4));
}

/// An operation after the calls of all parts would be in the last stage.
TEST(Oracle, AuxiliaryLossesBelongToEarlyStages) {
  for (const char* name : {"auxiliary", "exact-auxiliary", "balanced"}) {
    std::vector<int> stages;
    for (const split::LocalLoss& loss : in_four_stages(name, AuxiliaryLosses::InPlace).local_losses)
      stages.push_back(loss.stage);
    EXPECT_EQ(stages, (std::vector<int>{0, 2})) << name;
    EXPECT_TRUE(in_four_stages(name, AuxiliaryLosses::Added).local_losses.empty()) << name;
  }
  EXPECT_THROW(in_four_stages("mlp", AuxiliaryLosses::InPlace), InputError);
}

TEST(Oracle, ValuesCrossToTheStagesThatTheCasesMean) {
  const auto readers = [](const std::string& name) {
    std::vector<std::vector<int>> all;
    for (const split::Boundary& boundary : in_four_stages(name, AuxiliaryLosses::None).boundaries) {
      std::vector<int>& stages = all.emplace_back();
      for (const split::Boundary::Consumer& consumer : boundary.consumers) stages.push_back(consumer.stage);
    }
    std::ranges::sort(all, std::greater(), &std::vector<int>::size);
    return all.front();
  };
  for (const char* name : {"strided-gradients", "exact-strided-gradients", "exact-read-by-all"})
    EXPECT_EQ(readers(name), (std::vector<int>{1, 2, 3})) << name;
  EXPECT_EQ(readers("exact-twin-skips"), (std::vector<int>{1, 3}));
}

TEST(Oracle, AnEvaluationNeedsNoBackwards) {
  Case c = make_case("mlp", LossKind::Sum, Reduction::Sum, 8, 4);
  c.steps = {StepKind::Eval};
  const Results results = run_detached(c, kSeed, StageOrders(2, {StageOrder{ascending(4), {}}}));
  EXPECT_EQ(expect_same_bits(run_whole_model(c, kSeed, {}), results, "evaluation"), 8 + 16);
}

TEST(Oracle, RefusesMoreStagesThanSplitPointsAndIncompleteOrders) {
  const Case c = make_case("mlp", LossKind::Sum, Reduction::Sum, 4, 2);
  EXPECT_THROW(run_detached(c, kSeed, orders(17, ascending(2))), InputError);
  for (const std::vector<int>& wrong : {std::vector<int>{}, {0}, {0, 0}, {0, 2}, {0, 1, 1}, {-1, 0}}) {
    StageOrders incomplete = orders(2, ascending(2));
    incomplete[1][0].backwards = wrong;
    EXPECT_THROW(run_detached(c, kSeed, incomplete), Error);
    incomplete = orders(2, ascending(2));
    incomplete[0][0].forwards = wrong;
    EXPECT_THROW(run_detached(c, kSeed, incomplete), Error);
  }
}

}  // namespace
}  // namespace plumbline::reference
