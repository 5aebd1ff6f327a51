#include "conformance/corpus.h"

#include <fnmatch.h>

#include <algorithm>
#include <numeric>
#include <ranges>

#include "runtime/error.h"
#include "runtime/join.h"

namespace plumbline {
namespace {

constexpr LossSpec sum{LossKind::Sum, Reduction::Sum};
constexpr LossSpec squares{LossKind::Mse, Reduction::Sum};
constexpr LossSpec mean_square{LossKind::Mse, Reduction::Mean};
constexpr LossSpec cross_entropy{LossKind::CrossEntropy, Reduction::Mean};
constexpr LossSpec own_loss{LossKind::Output, Reduction::Mean};

using enum StepKind;

/// What exact cases share: 8 rows, 4 micro-batches, squares summed, gradients divided by 4 (all powers of two).
/// The zoo's proof (reference/models/exact_test.cc) covers gradients summed over at most 16 rows in float32, 8 in bf16.
std::vector<Case> exact_cases() {
  return {
      {.id = "exact-mlp-sum",
       .title = "eight layers, outputs summed",
       .why = "a lost, doubled or misplaced gradient in the plain chain",
       .model = "exact-mlp",
       .loss = sum},
      {.id = "exact-mlp-mean",
       .title = "eight layers, mean of squares",
       .why = "a mean taken twice or not at all, division by the number of micro-batches done twice",
       .model = "exact-mlp",
       .loss = mean_square},
      {.id = "exact-mlp-bf16",
       .title = "eight layers in bf16, every sum below 2^8",
       .why = "gradients accumulated or sent in another dtype than the parameter's",
       .model = "exact-mlp",
       .dtype = Dtype::BF16,
       .loss = sum},
      {.id = "exact-tied",
       .title = "embedding tied to the head, first and last stage",
       .why = "copies of a shared parameter whose gradients are not summed, or are summed twice",
       .model = "exact-tied",
       .loss = squares},
      {.id = "exact-skip",
       .title = "values added and concatenated two stages later",
       .why = "a skip's gradient lost, delivered to the wrong stage, or added to the wrong micro-batch",
       .model = "exact-skip",
       .loss = squares},
      {.id = "exact-stash",
       .title = "two skips, declared by stash and pop",
       .why = "as exact-skip; a skip that is popped by another than it was stashed for",
       .model = "exact-stash",
       .loss = squares},
      {.id = "exact-wide",
       .title = "one activation read by three later stages",
       .why = "gradients of a value with several readers overwritten instead of added",
       .model = "exact-wide",
       .loss = squares},
      {.id = "exact-frozen",
       .title = "frozen layers, one stage of them whole",
       .why = "a stage without trainable parameters that stops the gradient, or a frozen parameter that gets one",
       .model = "exact-frozen",
       .loss = squares},
      {.id = "exact-multi-io",
       .title = "several inputs and outputs, whole numbers across stages, an unused output",
       .why =
           "inputs or outputs in the wrong order, a gradient asked of an integer, a replicated input that is divided",
       .model = "exact-multi-io",
       .loss = squares},
      {.id = "exact-relu",
       .title = "relu with positive biases",
       .why = "a mask taken from another micro-batch's activation",
       .model = "exact-relu",
       .loss = squares},
      {.id = "exact-uneven-rows",
       .title = "10 rows over 4 micro-batches",
       .why = "rows lost or repeated where they do not divide; shapes kept from the first micro-batch",
       .model = "exact-mlp",
       .rows = 10,
       .loss = squares},
      {.id = "exact-few-microbatches",
       .title = "2 micro-batches, fewer than stages",
       .why = "warm-up that counts on more micro-batches than there are",
       .model = "exact-mlp",
       .microbatches = 2,
       .loss = squares},
      {.id = "exact-one-microbatch",
       .title = "1 micro-batch",
       .why = "a pipeline without a steady phase",
       .model = "exact-mlp",
       .microbatches = 1,
       .loss = squares},
      {.id = "exact-many-microbatches",
       .title = "16 micro-batches of one row",
       .why = "the last of many gradients dropped; buffers reused while still being sent",
       .model = "exact-mlp",
       .rows = 16,
       .microbatches = 16,
       .loss = squares},
      {.id = "exact-accumulate",
       .title = "train, evaluate, train: gradients accumulate",
       .why = "an earlier step's gradients divided again, cleared, or changed by an evaluation",
       .model = "exact-mlp",
       .loss = squares,
       .steps = {Train, Eval, Train}},
      {.id = "exact-undivided",
       .title = "gradients not divided by the number of micro-batches",
       .why = "division that cannot be switched off",
       .model = "exact-mlp",
       .loss = squares,
       .divide_by_microbatches = false},
      {.id = "exact-zero-grad",
       .title = "train, zero_grad, train: only the second step counts",
       .why = "gradients that survive zero_grad in an accumulator of the runtime's own",
       .model = "exact-mlp",
       .loss = squares,
       .steps = {Train, ZeroGrad, Train}},
      {.id = "exact-eval-only",
       .title = "one evaluation, nothing trained",
       .why = "a schedule's backwards carried out, or waited for, where there is no backward",
       .model = "exact-mlp",
       .loss = squares,
       .steps = {Eval}},
      {.id = "exact-odd-microbatches",
       .title = "5 micro-batches of 3 rows, not divided",
       .why = "a number of micro-batches that is assumed to be a multiple of the number of stages",
       .model = "exact-mlp",
       .rows = 15,
       .microbatches = 5,
       .loss = squares,
       .divide_by_microbatches = false},
      {.id = "exact-tied-accumulate",
       .title = "tied embedding over two steps that accumulate",
       .why = "a shared parameter's sum that is reduced again at every step",
       .model = "exact-tied",
       .loss = squares,
       .steps = {Train, Eval, Train}},
      {.id = "exact-tied-uneven",
       .title = "tied embedding, 10 rows over 4 micro-batches",
       .why = "shapes of a shared parameter's copies taken from the micro-batch",
       .model = "exact-tied",
       .rows = 10,
       .loss = squares},
      {.id = "exact-skip-many",
       .title = "skips with 16 micro-batches of one row",
       .why = "skipping values of two micro-batches in flight that are mixed up",
       .model = "exact-skip",
       .rows = 16,
       .microbatches = 16,
       .loss = squares},
      {.id = "exact-wide-few",
       .title = "an activation with three readers, 2 micro-batches",
       .why = "waiting for a gradient that no reader sends any more",
       .model = "exact-wide",
       .microbatches = 2,
       .loss = squares},
      {.id = "exact-multi-io-uneven",
       .title = "several inputs and outputs, 10 rows over 4 micro-batches",
       .why = "inputs divided along different dimensions into different chunks",
       .model = "exact-multi-io",
       .rows = 10,
       .loss = squares},
  };
}

/// Twenty times zero_grad, train, optimizer.
std::vector<Step> training_run() {
  std::vector<Step> steps;
  for (int i = 0; i < 20; ++i) steps.insert(steps.end(), {ZeroGrad, Train, Optimizer});
  return steps;
}

std::vector<Case> real_cases() {
  constexpr OptimizerSpec descent{.learning_rate = 0.05, .momentum = 0.9};
  return {
      {.id = "mlp",
       .title = "eight layers of gelu",
       .why = "order of accumulation: another order changes the last bits",
       .truth = Truth::SameOrder,
       .model = "mlp",
       .loss = mean_square},
      {.id = "transformer-lm",
       .title = "language model on bytes of a text, tied embedding",
       .why = "attention, norms and a shared parameter with real values; order of a shared parameter's sum",
       .truth = Truth::SameOrder,
       .model = "transformer-lm",
       .loss = cross_entropy},
      {.id = "resnet-bn",
       .title = "residual convolutions with batch norm",
       .why = "running statistics updated twice (on recomputation) or in another order than that of the micro-batches",
       .truth = Truth::SameOrder,
       .model = "resnet-bn",
       .loss = cross_entropy},
      {.id = "resnet-bn-eval",
       .title = "batch norm: train, evaluate, train",
       .why = "an evaluation that uses or moves the statistics of training",
       .truth = Truth::SameOrder,
       .model = "resnet-bn",
       .loss = cross_entropy,
       .steps = {Train, Eval, Train}},
      {.id = "unet",
       .title = "convolutions down and up, skips across two stages",
       .why = "large skipping values with layouts of their own; gradients of a value that leaves twice",
       .truth = Truth::SameOrder,
       .model = "unet",
       .loss = mean_square},
      {.id = "unet-stash",
       .title = "four nested skips, declared by stash and pop",
       .why =
           "a skip handed to the wrong popper, given a gradient twice or not at all, or passed through stages between",
       .truth = Truth::SameOrder,
       .model = "unet-stash",
       .loss = mean_square},
      {.id = "dropout",
       .title = "dropout in each of eight layers",
       .why = "masks that depend on the rank or on the order of actions; a mask drawn anew in backward",
       .truth = Truth::SameOrder,
       .model = "mlp-dropout",
       .loss = mean_square},
      {.id = "frozen",
       .title = "frozen layers, one stage of them whole",
       .why = "gradient through a stage that learns nothing, with real values",
       .truth = Truth::SameOrder,
       .model = "mlp-frozen",
       .loss = mean_square},
      {.id = "multi-io",
       .title = "several inputs and outputs, whole numbers across stages, an unused output",
       .why = "as exact-multi-io, with real values",
       .truth = Truth::SameOrder,
       .model = "multi-io",
       .loss = mean_square},
      {.id = "mlp-bf16",
       .title = "eight layers of gelu in bf16",
       .why = "a gradient rounded once more or once less than the parameter's dtype asks",
       .truth = Truth::SameOrder,
       .model = "mlp",
       .dtype = Dtype::BF16,
       .loss = mean_square},
      {.id = "loss-inside",
       .title = "the model returns its loss; the target is an input",
       .why = "a target that must travel to the last stage; a scalar output",
       .truth = Truth::SameOrder,
       .model = "loss-inside",
       .loss = own_loss},
      {.id = "uneven-mean",
       .title = "mean loss, 10 rows over 4 micro-batches",
       .why = "a mean of means: each row must weigh the same, as in the whole batch",
       .truth = Truth::Bounded,
       .model = "mlp",
       .rows = 10,
       .loss = mean_square},
      {.id = "mlp-many-microbatches",
       .title = "16 micro-batches of one row, real values",
       .why = "order of accumulation over a long steady phase, on more ranks than most cases have micro-batches for",
       .truth = Truth::SameOrder,
       .model = "mlp",
       .rows = 16,
       .microbatches = 16,
       .loss = mean_square},
      {.id = "transformer-bounded",
       .title = "language model against float64",
       .why = "an oracle that shares the error of what it judges",
       .truth = Truth::Bounded,
       .model = "transformer-lm",
       .loss = cross_entropy},
      {.id = "train-mlp",
       .title = "20 steps of gradient descent with momentum",
       .why = "what builds up from step to step: momentum, stale gradients, stale parameters",
       .truth = Truth::SameOrder,
       .model = "mlp",
       .loss = mean_square,
       .steps = training_run(),
       .optimizer = descent},
      {.id = "train-transformer",
       .title = "20 steps of a language model with a tied embedding",
       .why = "copies of a shared parameter that drift apart",
       .truth = Truth::SameOrder,
       .model = "transformer-lm",
       .loss = cross_entropy,
       .steps = training_run(),
       .optimizer = descent},
  };
}

bool is_smoke(const Case& c) {
  for (const char* id : {"exact-mlp-sum", "exact-tied", "multi-io", "transformer-lm"})
    if (c.id == id) return true;
  return false;
}

/// Letters to insert, delete or replace to turn one text into the other (Levenshtein).
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

/// The three ids nearest to what was asked for.
std::string near_ids(const std::vector<Case>& cases, const std::string& glob) {
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const Case& c : cases) ranked.emplace_back(edit_distance(c.id, glob), c.id);
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return join(ranked | std::views::take(3) | std::views::values);
}

}  // namespace

const std::vector<Case>& corpus() {
  static const std::vector<Case> cases = [] {
    std::vector<Case> all = exact_cases();
    for (Case& c : real_cases()) all.push_back(std::move(c));
    return all;
  }();
  return cases;
}

const std::vector<std::string>& profile_names() {
  static const std::vector<std::string> names = {"core", "nightly", "smoke"};
  return names;
}

std::vector<Case> profile(std::string_view name) {
  if (name == "core" || name == "nightly") return corpus();
  if (name != "smoke")
    throw InputError("profile: no profile is named '" + std::string(name) + "'; accepted: " + join(profile_names()));
  std::vector<Case> cases;
  std::copy_if(corpus().begin(), corpus().end(), std::back_inserter(cases), is_smoke);
  return cases;
}

std::vector<Case> select(const std::vector<Case>& cases, const std::string& glob) {
  std::vector<Case> selected;
  for (const Case& c : cases)
    if (fnmatch(glob.c_str(), c.id.c_str(), 0) == 0) selected.push_back(c);
  if (selected.empty()) throw InputError("case: no case matches '" + glob + "'; near: " + near_ids(cases, glob));
  return selected;
}

const Case& find_case(const std::string& id) {
  for (const Case& c : corpus())
    if (c.id == id) return c;
  throw InputError("case: no case is named '" + id + "'; near: " + near_ids(corpus(), id));
}

}  // namespace plumbline
