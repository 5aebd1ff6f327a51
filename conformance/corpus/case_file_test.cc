// Files of cases: what they say is what is read, and every mistake is refused with its line and what would be accepted.
#include "conformance/corpus/case_file.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "conformance/corpus/features.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/io/tensor_file.h"
#include "runtime/io/write_file.h"
#include "runtime/testing/refusal.h"

namespace plumbline::conformance {
namespace {

using reference::StepKind;

constexpr const char* kHead = "schema = \"plumbline-cases/1\"\n";

/// Lines 2 to 8, then `more` from line 9 on.
std::string one_case(const std::string& more = "", const std::string& id = "mine") {
  return "[[case]]\nid = \"" + id +
         "\"\ntitle = \"a title\"\nwhy = \"a bug\"\ntruth = \"same-order\"\nmodel = \"mlp\"\n"
         "loss = {kind = \"mse\", reduction = \"mean\"}\n" +
         more;
}

std::vector<reference::Case> read_cases(const std::string& text) {
  CaseFiles files;
  files.read(text, "mine.toml");
  return files.cases();
}

std::string refusal(const std::string& text) {
  return testing::refusal([&] { read_cases(text); });
}

/// The valid file with `from` replaced by `to`.
std::string with(const std::string& from, const std::string& to) {
  std::string text = kHead + one_case();
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(CaseFile, WhatIsLeftOutHasTheDefaultsOfCase) {
  const std::vector<reference::Case> cases = read_cases(kHead + one_case());
  ASSERT_EQ(cases.size(), 1u);
  const reference::Case& c = cases.front();
  EXPECT_EQ(c.id, "mine");
  EXPECT_EQ(c.title, "a title");
  EXPECT_EQ(c.why, "a bug");
  EXPECT_EQ(c.truth, reference::Truth::SameOrder);
  EXPECT_EQ(c.model, "mlp");
  EXPECT_EQ(c.loss.kind, reference::LossKind::Mse);
  EXPECT_EQ(c.loss.reduction, reference::Reduction::Mean);
  EXPECT_FALSE(c.loss.ignores_targets);
  EXPECT_EQ(c.dtype, reference::Dtype::F32);
  EXPECT_EQ(c.rows, 8);
  EXPECT_EQ(c.microbatches, 4);
  EXPECT_EQ(c.division, reference::Division::Engine);
  ASSERT_EQ(c.steps.size(), 1u);
  EXPECT_EQ(c.steps[0], StepKind::Train);
  EXPECT_FALSE(c.input_gradients || c.keyword_inputs || c.parameter_hooks || c.boundary_hooks);
  EXPECT_FALSE(c.accumulation_hooks || c.weight_closures);
  EXPECT_EQ(c.schedule_csv, "");
  EXPECT_EQ(c.recompute, "never");
  EXPECT_TRUE(c.features.empty());
  EXPECT_EQ(c.data, 0);
}

TEST(CaseFile, EveryKeyIsRead) {
  const reference::Case c = read_cases(std::string(kHead) + R"(
[schedules]
backwards = """
0F1,0F0,0B1,0B0
1F1,1F0,1B1,1B0
"""
[[case]]
id = "exact-mine-2"
title = "a title"
why = "a bug"
truth = "bounded"
model = "mlp"
dtype = "bf16"
rows = 9
microbatches = 2
loss = {kind = "cross-entropy", reduction = "mean", ignores_targets = true, class_weights = true, equal_weights = true, parameters = true, auxiliary = "in-place"}
divides = "nobody"
steps = [
  "train", {kind = "train", rows = 7}, "zero_grad", {kind = "eval", rows = 6, target = false},
  {kind = "freeze", parameters = "layers.[34].*"}, {kind = "unfreeze", parameters = "*"}, "optimizer", "eval", "read",
]
repeat_steps = 3
steps_before = ["train", "optimizer", {kind = "eval", rows = 4}]
saves_optimizer = true
optimizer = {kind = "adamw", learning_rate = 0.5, beta1 = 0.25, beta2 = 0.125, epsilon = 2, weight_decay = 0.0625, clip_norm = 3, clip_epsilon = 4, norm = "inf", skip_nonfinite = true, loss_scale = 8}
input_gradients = true
keyword_inputs = true
parameter_hooks = true
boundary_hooks = true
schedule = "backwards"
recompute = "except-last"
features = ["f64", "views"]
data = 5
)")
                                .front();
  EXPECT_EQ(c.id, "exact-mine-2");
  EXPECT_EQ(c.truth, reference::Truth::Bounded);
  EXPECT_EQ(c.dtype, reference::Dtype::BF16);
  EXPECT_EQ(c.rows, 9);
  EXPECT_EQ(c.microbatches, 2);
  EXPECT_EQ(c.loss.kind, reference::LossKind::CrossEntropy);
  EXPECT_EQ(c.loss.reduction, reference::Reduction::Mean);
  EXPECT_TRUE(c.loss.ignores_targets && c.loss.class_weights && c.loss.equal_weights && c.loss.parameters);
  EXPECT_EQ(c.loss.auxiliary, reference::AuxiliaryLosses::InPlace);
  EXPECT_EQ(c.optimizer.clip_norm, 3);
  EXPECT_EQ(c.optimizer.clip_epsilon, 4);
  EXPECT_EQ(c.optimizer.norm, reference::NormKind::Infinity);
  EXPECT_TRUE(c.optimizer.skip_nonfinite);
  EXPECT_EQ(c.optimizer.loss_scale, 8);
  EXPECT_EQ(c.division, reference::Division::Nobody);
  ASSERT_EQ(c.steps_before.size(), 3u);
  EXPECT_EQ(c.steps_before[1], StepKind::Optimizer);
  EXPECT_EQ(c.steps_before[2].rows, 4);
  EXPECT_TRUE(c.saves_optimizer);
  ASSERT_EQ(c.steps.size(), 27u);
  const StepKind kinds[] = {StepKind::Train,     StepKind::Train,  StepKind::ZeroGrad,
                            StepKind::Eval,      StepKind::Freeze, StepKind::Unfreeze,
                            StepKind::Optimizer, StepKind::Eval,   StepKind::Read};
  for (size_t i = 0; i < c.steps.size(); ++i) EXPECT_EQ(c.steps[i], kinds[i % 9]) << i;
  EXPECT_EQ(c.steps[0].rows, 0);
  EXPECT_EQ(c.steps[10].rows, 7);
  EXPECT_EQ(c.steps[12].rows, 6);
  EXPECT_FALSE(c.steps[12].has_target);
  EXPECT_TRUE(c.steps[16].has_target);
  EXPECT_EQ(c.steps[13].parameters, "layers.[34].*");
  EXPECT_EQ(c.steps[14].parameters, "*");
  EXPECT_EQ(c.optimizer.kind, reference::OptimizerKind::AdamW);
  EXPECT_EQ(c.optimizer.learning_rate, 0.5);
  EXPECT_EQ(c.optimizer.beta1, 0.25);
  EXPECT_EQ(c.optimizer.beta2, 0.125);
  EXPECT_EQ(c.optimizer.epsilon, 2);
  EXPECT_EQ(c.optimizer.weight_decay, 0.0625);
  EXPECT_TRUE(c.input_gradients && c.keyword_inputs && c.parameter_hooks && c.boundary_hooks);
  EXPECT_FALSE(c.weight_closures || c.accumulation_hooks);  // they go without parameter_hooks
  EXPECT_TRUE(read_cases(kHead + one_case("weight_closures = true\n")).front().weight_closures);
  EXPECT_TRUE(read_cases(kHead + one_case("accumulation_hooks = true\n")).front().accumulation_hooks);
  EXPECT_EQ(c.schedule_csv, "0F1,0F0,0B1,0B0\n1F1,1F0,1B1,1B0\n");
  EXPECT_EQ(c.recompute, "except-last");
  EXPECT_EQ(c.features, (std::vector<std::string>{"f64", "views"}));
  EXPECT_EQ(c.data, 5);
}

TEST(CaseFile, GivenBatches) {
  const reference::Case some =
      read_cases(kHead + one_case("input_gradients = true\ngradient_microbatches = [1, 3]\ndivided = true\n")).front();
  EXPECT_TRUE(some.divided);
  EXPECT_EQ(some.gradient_microbatches, (std::vector<int>{1, 3}));
  EXPECT_TRUE(has_feature(some, "divided") && has_feature(some, "some-gradients"));
  EXPECT_FALSE(requires_gradients(some, 0));
  EXPECT_TRUE(requires_gradients(some, 1));
  const auto refused = [](const std::string& keys) { return refusal(kHead + one_case(keys)); };
  EXPECT_NE(refused("gradient_microbatches = [1]\n").find("goes with input_gradients = true"), std::string::npos);
  EXPECT_NE(refused("input_gradients = true\ngradient_microbatches = [4]\n"), "accepted");
  EXPECT_NE(refused("whole_gradients = true\n").find("goes with input_gradients = true"), std::string::npos);
  EXPECT_NE(refused("input_gradients = true\nwhole_gradients = true\ndivided = true\n").find("given whole"),
            std::string::npos);
  EXPECT_NE(refused("input_gradients = true\nwhole_gradients = true\n").find("expected truth = \"bounded\""),
            std::string::npos);
}

TEST(CaseFile, IgnoredRows) {
  std::string text = kHead + one_case();
  const std::string loss = "kind = \"mse\", reduction = \"mean\"";
  text.replace(text.find(loss), loss.size(),
               "kind = \"cross-entropy\", reduction = \"sum\", ignores_targets = true, ignored_rows = 2");
  EXPECT_EQ(read_cases(text).front().loss.ignored_rows, 2);
}

TEST(CaseFile, Replicas) {
  const reference::Case c = read_cases(kHead + one_case("replicas = 2\nshards_parameters = true\n")).front();
  EXPECT_EQ(c.replicas, 2);
  EXPECT_TRUE(c.shards_parameters);
  EXPECT_TRUE(has_feature(c, "replicas") && has_feature(c, "sharded"));
  const auto refused = [](const std::string& keys) { return refusal(kHead + one_case(keys)); };
  EXPECT_NE(refused("replicas = 3\n").find("its 4 micro-batches cannot be divided evenly"), std::string::npos);
  EXPECT_NE(refused("shards_parameters = true\n").find("goes with replicas = 2 or more"), std::string::npos);
  const std::string after = "accumulation_hooks = true\n";
  EXPECT_NE(refused(after + "parameter_hooks = true\n").find("goes without parameter_hooks"), std::string::npos);
  for (const char* steps : {R"("train", "eval", "train")", R"("train", "zero_grad", "train", "train")"})
    EXPECT_NE(refused(after + "steps = [" + steps + "]\n").find("expected a \"zero_grad\""), std::string::npos)
        << steps;
  for (const char* hooks : {"parameter_hooks", "accumulation_hooks"})
    EXPECT_NE(
        refused(std::string("weight_closures = true\n") + hooks + " = true\n").find("goes without hooks on parameters"),
        std::string::npos)
        << hooks;
  EXPECT_NE(refused("replicas = 1\n"), "accepted");
}

TEST(CaseFile, EveryWordHasItsMeaning) {
  const auto read_with = [](const std::string& from, const std::string& to) {
    return read_cases(with(from, to)).front();
  };
  using enum reference::Truth;
  EXPECT_EQ(read_with("same-order", "bounded").truth, Bounded);
  EXPECT_EQ(read_with("truth = \"same-order\"\n", "").truth, SameOrder);
  EXPECT_EQ(read_with("truth = \"same-order\"\nmodel = \"", "model = \"exact-").truth, Exact);
  for (const auto& [word, kind] : {std::pair{"sum", reference::LossKind::Sum},
                                   {"mse", reference::LossKind::Mse},
                                   {"cross-entropy", reference::LossKind::CrossEntropy},
                                   {"output", reference::LossKind::Output}})
    EXPECT_EQ(read_with("\"mse\"", '"' + std::string(word) + '"').loss.kind, kind) << word;
  for (const auto& [word, dtype] : {std::pair{"f32", reference::Dtype::F32},
                                    {"bf16", reference::Dtype::BF16},
                                    {"f64", reference::Dtype::F64},
                                    {"f16", reference::Dtype::F16}})
    EXPECT_EQ(read_cases(kHead + one_case("dtype = \"" + std::string(word) + "\"\n")).front().dtype, dtype) << word;
  for (const char* word : {"never", "except-last", "always"})
    EXPECT_EQ(read_cases(kHead + one_case("recompute = \"" + std::string(word) + "\"\n")).front().recompute, word);
  const reference::Case sgd =
      read_cases(kHead + one_case("steps = [\"train\", \"optimizer\"]\n"
                                  "optimizer = {kind = \"sgd\", learning_rate = 1, momentum = 0.5}"))
          .front();
  EXPECT_EQ(sgd.optimizer.kind, reference::OptimizerKind::Sgd);
  EXPECT_EQ(sgd.optimizer.momentum, 0.5);
}

TEST(CaseFile, ASchedulesTextHasARowForEachLine) {
  for (const char* end : {"", "\n", "\n\n", "\n \t\n", "\n  "}) {
    const std::string file = std::string(kHead) + "schedules.two = \"\"\"0F0,0B0\n1F0,1B0" + end + "\"\"\"\n" +
                             one_case("schedule = \"two\"\nmicrobatches = 1\n");
    EXPECT_EQ(read_cases(file).front().schedule_csv, "0F0,0B0\n1F0,1B0\n") << '"' << end << '"';
  }
}

TEST(CaseFile, MistakesAreRefusedWithTheirLine) {
  const std::string step = "{kind = \"freeze\", parameters = \"layers.[34].*\"}";
  const std::vector<std::pair<std::string, std::string>> files = {
      {"", "mine.toml:1: the key 'schema' is missing"},
      {"schema = 1", "mine.toml:1: schema: expected a string that is not empty, not 1"},
      {"schema = \"plumbline-cases/2\"",
       "mine.toml:1: schema: expected \"plumbline-cases/1\", not \"plumbline-cases/2\""},
      {kHead, "mine.toml:1: the key 'case' is missing"},
      {std::string(kHead) + "[case]\nid = \"x\"", "mine.toml:2: case: expected a list that is not empty, not a table"},
      {std::string(kHead) + "case = [1]", "mine.toml:2: case: expected a table, not 1"},
      {std::string(kHead) + "cases = 1",
       "mine.toml:2: no key 'cases' is known; expected one of schema, schedules, case"},
      {std::string(kHead) + "schedules = 1\n" + one_case(), "mine.toml:2: schedules: expected a table"},
      {kHead + one_case("rows = = 2"), "mine.toml:9: not TOML: "},
      {kHead + one_case("rows = 9\nrows = 9"), "mine.toml:10: not TOML: "},
      {kHead + one_case("micro_batches = 2"),
       "mine.toml:9: case: no key 'micro_batches' is known; nearest: microbatches, "},
      {kHead + one_case() + one_case(),
       "mine.toml:10: id: 'mine' is taken, at mine.toml:3; expected an id that no case"},
      {with("id = \"mine\"", ""), "mine.toml:2: case: the key 'id' is missing"},
      {with("\"mine\"", "\"My case\""),
       "mine.toml:3: id: expected lower-case letters, digits and '-', not \"My case\""},
      {with("\"mine\"", "\"-mine\""), "mine.toml:3: id: expected lower-case letters, digits and '-', not \"-mine\""},
      {with("\"mine\"", "\"../mine\""), "mine.toml:3: id: expected lower-case letters"},
      {with("\"a title\"", "\"\""), "mine.toml:4: title: expected a string that is not empty, not an empty string"},
      {with("\"a bug\"", "\"\"\"a\nbug\"\"\""), "mine.toml:5: why: expected one line"},
      {with("same-order", "same"), "mine.toml:6: truth: 'same' is unknown; expected one of exact, same-order, bounded"},
      {with("same-order", "exact"),
       "mine.toml:6: truth: the data of 'mlp' are no whole numbers; expected same-order or "},
      {with("\"same-order\"\nmodel = \"mlp\"", "\"bounded\"\nmodel = \"exact-mlp\""),
       "mine.toml:6: truth: the whole numbers of 'exact-mlp' may lie at the kink of a function, where rounding has no "
       "bound; expected exact or same-order, or another model"},
      {with("\"same-order\"", "\"bounded\"\ndtype = \"f64\""),
       "mine.toml:6: truth: nothing is more exact than f64, to bound its results; expected same-order, or another "
       "dtype"},
      {with("\"mlp\"", "\"exact-mpl\""), "mine.toml:7: model: 'exact-mpl' is unknown; nearest: exact-mlp, "},
      {with("\"mlp\"", "[\"mlp\"]"), "mine.toml:7: model: expected a string that is not empty, not a list"},
      {with("{kind = \"mse\", reduction = \"mean\"}", "\"mse\""), "mine.toml:8: loss: expected a table, not \"mse\""},
      {with("\"mse\"", "\"mae\""),
       "mine.toml:8: kind: 'mae' is unknown; expected one of sum, mse, cross-entropy, output"},
      {with(", reduction = \"mean\"", ""), "mine.toml:8: loss: the key 'reduction' is missing"},
      {with("\"mean\"", "\"max\""), "mine.toml:8: reduction: 'max' is unknown; expected one of sum, mean, "},
      {with("\"mean\"", "\"mean\", of = 1"),
       "mine.toml:8: loss: no key 'of' is known; expected one of kind, reduction, "},
      {with("\"mean\"", "\"mean\", ignores_targets = true"),
       "mine.toml:8: loss: ignores_targets goes with kind = \"cross"},
      {with("\"mean\"", "\"mean\", ignored_rows = 2"), "mine.toml:8: ignored_rows: goes with ignores_targets = true"},
      {with("kind = \"mse\", reduction = \"mean\"",
            "kind = \"cross-entropy\", reduction = \"sum\", ignores_targets = true, ignored_rows = 8"),
       "mine.toml:2: case: loss.ignored_rows = 8 ignores all targets of a batch of 8 rows; expected fewer"},
      {with("\"mean\"", "\"mean\", class_weights = true"), "mine.toml:8: loss: class_weights goes with kind = \"cross"},
      {with("kind = \"mse\", reduction = \"mean\"", "kind = \"output\", reduction = \"sum\", parameters = true"),
       "mine.toml:8: loss: parameters goes with another kind than \"output\""},
      {with("\"mlp\"\nloss = {kind = \"mse\", reduction = \"mean\"",
            "\"early-exit\"\ndivided = true\nsteps = [\"train\", \"eval\"]\nloss = {kind = \"mse\", reduction = "
            "\"mean\", parameters = true"),
       "mine.toml:10: loss: parameters goes with a model whose evaluations all end in the last stage, which has them"},
      {with("\"mean\"", "\"sum\", equal_weights = true"),
       "mine.toml:8: loss: equal_weights goes with reduction = \"mean\""},
      {with("kind = \"mse\", reduction = \"mean\"", "kind = \"sum\", reduction = \"batch-mean\""),
       "mine.toml:8: loss: reduction = \"batch-mean\" goes with kind = \"mse\" or"},
      {with("\"mean\"", "\"mean\", auxiliary = \"all\""),
       "mine.toml:8: auxiliary: 'all' is unknown; expected one of none, added, in-place"},
      {kHead + one_case("dtype = \"fp32\""),
       "mine.toml:9: dtype: 'fp32' is unknown; expected one of f32, bf16, f64, f16"},
      {kHead + one_case("rows = \"9\""), "mine.toml:9: rows: expected a whole number from 1 to 65536, not \"9\""},
      {kHead + one_case("rows = 9.0"), "mine.toml:9: rows: expected a whole number from 1 to 65536, not 9.0"},
      {kHead + one_case("rows = 0"), "mine.toml:9: rows: expected a whole number from 1 to 65536, not 0"},
      {kHead + one_case("data = 0"), "mine.toml:9: data: expected a whole number from 1 to 65536, not 0"},
      {kHead + one_case("rows = 65537"), "mine.toml:9: rows: expected a whole number from 1 to 65536, not 65537"},
      {kHead + one_case("microbatches = 9"), "mine.toml:2: case: 8 rows are too few for 9 micro-batches; expected at "},
      {kHead + one_case("divides = 1"), "mine.toml:9: divides: expected a string that is not empty, not 1"},
      {kHead + one_case("input_gradients = \"yes\""),
       "mine.toml:9: input_gradients: expected true or false, not \"yes\""},
      {kHead + one_case("steps = []"), "mine.toml:9: steps: expected a list that is not empty, not an empty list"},
      {kHead + one_case("steps = \"train\""), "mine.toml:9: steps: expected a list that is not empty, not \"train\""},
      {kHead + one_case("steps = [\"train\",\n\"test\"]"),
       "mine.toml:10: steps: 'test' is unknown; expected one of train, eval, zero_grad, optimizer, freeze, unfreeze"},
      {kHead + one_case("steps = [1]"), "mine.toml:9: steps: expected a string that is not empty, not 1"},
      {kHead + one_case("steps = [\"zero_grad\"]"), "mine.toml:9: steps: none is \"train\" or \"eval\""},
      {kHead + one_case("steps = [\"train\", \"freeze\"]"), "mine.toml:9: steps: expected a table, such as " + step},
      {kHead + one_case("steps = [\"train\", {kind = \"freeze\"}]"),
       "mine.toml:9: steps: the key 'parameters' is missing"},
      {kHead + one_case("steps = [{kind = \"train\", rows = 3}]"),
       "mine.toml:9: rows: expected a whole number from 4 to 65536, not 3"},
      {kHead + one_case("steps = [{kind = \"train\", target = false}]"),
       "mine.toml:9: steps: no key 'target' is known; expected one of kind, rows"},
      {kHead + one_case("steps = [\"train\", {kind = \"zero_grad\", rows = 4}]"),
       "mine.toml:9: steps: no key 'rows' is known; expected one of kind"},
      {kHead + one_case("steps = [\"train\", \"optimizer\"]"), "mine.toml:9: steps: \"optimizer\" needs the key 'opt"},
      {kHead + one_case("repeat_steps = 0"),
       "mine.toml:9: repeat_steps: expected a whole number from 1 to 1000, not 0"},
      {kHead + one_case("optimizer = {kind = \"sgd\", learning_rate = 1}"),
       "mine.toml:9: optimizer: goes with a step \"optimizer\""},
      {kHead +
           one_case("steps = [\"eval\", \"optimizer\", \"train\"]\noptimizer = {kind = \"sgd\", learning_rate = 1}"),
       "mine.toml:9: steps: no parameter has a gradient at the first \"optimizer\"; expected a \"train\" before it"},
      {kHead + one_case("steps_before = [\"optimizer\", \"train\"]\noptimizer = {kind = \"sgd\", learning_rate = 1}"),
       "mine.toml:9: steps_before: no parameter has a gradient at the first \"optimizer\""},
      {kHead + one_case("saves_optimizer = true"), "mine.toml:9: saves_optimizer: goes with a step \"optimizer\""},
      {kHead + one_case("steps_before = [\"train\"]"),
       "mine.toml:9: steps_before: none is \"optimizer\": nothing would be saved"},
      {kHead + one_case("steps_before = [\"optimizer\"]"), "mine.toml:9: steps_before: none is \"train\" or \"eval\""},
      {kHead + one_case("optimizer = {kind = \"adam\", learning_rate = 1}"),
       "mine.toml:9: kind: 'adam' is unknown; expected one of sgd, adamw"},
      {kHead + one_case("optimizer = {kind = \"sgd\"}"), "mine.toml:9: optimizer: the key 'learning_rate' is missing"},
      {kHead + one_case("optimizer = {kind = \"sgd\", learning_rate = -1}"),
       "mine.toml:9: learning_rate: expected a number of at least 0, not -1"},
      {kHead + one_case("optimizer = {kind = \"sgd\", learning_rate = nan}"),
       "mine.toml:9: learning_rate: expected a number of at least 0, not nan"},
      {kHead + one_case("optimizer = {kind = \"sgd\", learning_rate = 1, beta1 = 0.5}"),
       "mine.toml:9: optimizer: no key 'beta1' is known; nearest: kind, norm, momentum"},
      {kHead + one_case("recompute = \"sometimes\""),
       "mine.toml:9: recompute: 'sometimes' is unknown; expected one of never, except-last, always"},
      {kHead + one_case("features = [\"veiws\"]"), "mine.toml:9: features: 'veiws' is unknown; nearest: views, "},
      {kHead + one_case("features = \"views\""), "mine.toml:9: features: expected a list that is not empty"},
      {kHead + one_case("schedule = \"x\""), "mine.toml:9: schedule: the file has no table [schedules]"},
  };
  for (const auto& [text, message] : files) testing::expect_line(refusal(text), message);
}

TEST(CaseFile, SchedulesAreRefusedWithTheirLine) {
  const auto with_csv = [](const std::string& csv) {
    return kHead + ("[schedules]\nodd = \"\"\"\n" + csv + "\"\"\"\n") +
           one_case("schedule = \"odd\"\nmicrobatches = 2\n");
  };
  EXPECT_EQ(refusal(with_csv("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n")), "accepted");
  const std::vector<std::pair<std::string, std::string>> files = {
      {with_csv("0F0,0F1,0B0,0B1\n1F0,1X1,1B0,1B1\n"), "mine.toml:3: odd: CSV: row 2 (rank 1), cell 2: action '1X1'"},
      {with_csv(""), "mine.toml:3: odd: expected a string that is not empty"},
      {with_csv("0F0,0F1,0B0,0B1\n1F0,1F1,1B0\n"), "mine.toml:3: odd: schedule CSV: "},
      {with_csv("0B0,0F0,0F1,0B1\n1F0,1F1,1B0,1B1\n"), "mine.toml:3: odd: schedule CSV: "},
      {with_csv("0F0,0F1\n1F0,1F1\n"), "mine.toml:3: odd: schedule CSV: "},
      {with_csv("0F0,0B0\n1F0,1B0\n"), "mine.toml:14: schedule: 'odd' is for 1 micro-batches, the case has 2"},
      {std::string(kHead) + "schedules.odd = 1\n" + one_case("schedule = \"odd\""),
       "mine.toml:2: odd: expected a string that is not empty, not 1"},
      {std::string(kHead) + "schedules.odd = \"0F0\"\n" + one_case("schedule = \"even\""),
       "mine.toml:10: schedule: 'even' is unknown; expected one of odd"},
  };
  for (const auto& [text, message] : files) testing::expect_line(refusal(text), message);
}

TEST(CaseFile, IdsAreUniqueAcrossFiles) {
  CaseFiles files;
  files.read(kHead + one_case(), "a.toml");
  files.read(kHead + one_case("", "other"), "b.toml");
  testing::expect_line(testing::refusal([&] { files.read(kHead + one_case("", "mine"), "c.toml"); }),
                       "c.toml:3: id: 'mine' is taken, at a.toml:3");
}

/// The first file of docs/corpus.md, as a reader would copy it.
TEST(CaseFile, TheSampleInTheDocsIsAccepted) {
  const char* docs = std::getenv("PLUMBLINE_DOCS");
  if (!docs) GTEST_SKIP() << "PLUMBLINE_DOCS is not set";
  const std::string page = read_file(std::string(docs) + "/corpus.md"), fence = "```toml\n";
  const size_t begin = page.find(fence) + fence.size();
  const std::vector<reference::Case> cases = read_cases(page.substr(begin, page.find("```", begin) - begin));
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[0].id, "my-uneven");
  EXPECT_EQ(cases[0].rows, 11);
  EXPECT_EQ(cases[1].schedule_csv, "0F1,0F0,0B1,0B0\n1F1,1F0,1B1,1B0\n");
}

TEST(CaseFile, AFolderHasItsFilesInAlphabeticalOrder) {
  const TemporaryFolder folder;
  const auto names = [&] {
    std::vector<std::string> names;
    for (const std::filesystem::path& file : case_files(folder.path())) names.push_back(file.filename().string());
    return names;
  };
  testing::expect_line(testing::refusal([&] { names(); }), "--corpus: folder '", "has no file *.toml");
  for (const char* name : {"b.toml", "a.toml", "c.txt", "10.toml"}) write_file(folder / name, "");
  EXPECT_EQ(names(), (std::vector<std::string>{"10.toml", "a.toml", "b.toml"}));
  testing::expect_line(testing::refusal([&] { case_files(folder / "none"); }), "--corpus: folder '", "cannot be read");
  testing::expect_line(testing::refusal([&] { case_files(folder / "a.toml"); }), "--corpus: folder '",
                       "cannot be read");
}

}  // namespace
}  // namespace plumbline::conformance
