#include "conformance/corpus/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <set>

#include "conformance/corpus/smoke.h"
#include "reference/models/parts/names.h"
#include "runtime/error.h"
#include "runtime/testing/refusal.h"

namespace plumbline::conformance {
namespace {

std::set<std::string> ids(const std::vector<reference::Case>& cases) {
  std::set<std::string> out;
  for (const reference::Case& c : cases) out.insert(c.id);
  return out;
}

bool is_power_of_two(int n) { return std::has_single_bit(static_cast<unsigned>(n)); }

bool starts_exact(const std::string& text) { return text.starts_with("exact-"); }

TEST(Corpus, IdsAreUniqueAndPlain) {
  EXPECT_EQ(ids(corpus()).size(), corpus().size());
  for (const reference::Case& c : corpus()) {
    for (const char letter : c.id)
      EXPECT_TRUE(std::islower(static_cast<unsigned char>(letter)) ||
                  std::isdigit(static_cast<unsigned char>(letter)) || letter == '-')
          << c.id;
    EXPECT_FALSE(c.title.empty()) << c.id;
    EXPECT_FALSE(c.why.empty()) << c.id;
  }
  std::set<std::string> titles, reasons;
  for (const reference::Case& c : corpus()) titles.insert(c.title), reasons.insert(c.why);
  EXPECT_GE(reasons.size() + 3, corpus().size()) << "each targets another class of bug";
}

/// The lock pins the exported form of every case.
TEST(Corpus, HasTheCasesOfTheLock) {
  const char* docs = std::getenv("PLUMBLINE_DOCS");
  if (!docs) GTEST_SKIP() << "PLUMBLINE_DOCS is not set";
  std::ifstream file(std::string(docs) + "/../conformance/corpus.lock");
  std::set<std::string> locked;
  std::string hash, path;
  while (file >> hash >> path) locked.insert(path.substr(0, path.find('/')));
  EXPECT_EQ(locked.size(), 542u);
  EXPECT_EQ(ids(corpus()), locked);
}

/// Users' reports, waivers and scripts contain these ids: none may disappear or change its meaning.
TEST(Corpus, PublishedIdsExist) {
  const std::set<std::string> there = ids(corpus());
  for (const char* id :
       {// exact
        "exact-mlp-sum", "exact-mlp-mean", "exact-mlp-bf16", "exact-tied", "exact-skip", "exact-stash", "exact-wide",
        "exact-frozen", "exact-multi-io", "exact-relu", "exact-uneven-rows", "exact-few-microbatches",
        "exact-one-microbatch", "exact-many-microbatches", "exact-accumulate", "exact-undivided",
        // same order
        "mlp", "transformer-lm", "resnet-bn", "unet", "unet-stash", "dropout", "frozen", "multi-io", "mlp-bf16",
        "loss-inside", "uneven-mean",
        // bounded, and several steps
        "transformer-bounded", "train-mlp", "train-transformer"})
    EXPECT_TRUE(there.contains(id)) << id;
}

TEST(Corpus, AtLeastSixtyPercentAreExact) {
  const auto exact = std::count_if(corpus().begin(), corpus().end(),
                                   [](const reference::Case& c) { return c.truth == reference::Truth::Exact; });
  EXPECT_GE(static_cast<double>(exact), 0.6 * static_cast<double>(corpus().size()));
}

TEST(Corpus, EveryModelIsInTheZooAndUsed) {
  std::set<std::string> used;
  for (const reference::Case& c : corpus()) {
    EXPECT_TRUE(std::binary_search(models::model_names().begin(), models::model_names().end(), c.model))
        << c.id << ": " << c.model;
    used.insert(c.model);
    EXPECT_GE(c.microbatches, 1) << c.id;
    EXPECT_GE(c.rows, c.microbatches) << c.id;
    static const std::set<std::string> only_evaluated = {"exact-divided-evaluation", "exact-eval-only",
                                                         "exact-exit-early",         "exact-exit-early-front",
                                                         "exact-exit-early-outputs", "exact-own-requests"};
    EXPECT_EQ(std::count(c.steps.begin(), c.steps.end(), reference::StepKind::Train) == 0,
              only_evaluated.contains(c.id))
        << c.id;
    for (const reference::Step& step : c.steps) {
      EXPECT_TRUE(step.rows == 0 || step.rows >= c.microbatches) << c.id;
      EXPECT_EQ(step.parameters.empty(), step != reference::StepKind::Freeze && step != reference::StepKind::Unfreeze)
          << c.id;
      EXPECT_TRUE(step.has_target || step == reference::StepKind::Eval)
          << c.id << ": only an evaluation may lack a target";
    }
  }
  EXPECT_EQ(used.size(), models::model_names().size());
}

/// Separates the cases that reference/models/exact_test.cc proves exact from those beyond its proof.
TEST(Corpus, ExactCasesStayWithinTheProof) {
  for (const reference::Case& c : corpus()) {
    EXPECT_EQ(c.truth == reference::Truth::Exact, starts_exact(c.model)) << c.id;
    EXPECT_EQ(c.truth == reference::Truth::Exact, starts_exact(c.id)) << c.id;
    if (c.truth != reference::Truth::Exact) continue;
    int rows = 0;
    for (const reference::Step& step : c.steps)
      if (step == reference::StepKind::Train) rows += reference::rows_of(c, step);
    EXPECT_LE(rows, c.dtype == reference::Dtype::BF16 || c.dtype == reference::Dtype::F16 ? 8 : 16) << c.id;
    // Updates are beyond that proof: the judge proves such a case by itself (exactness_problem), in float64.
    const bool updates = c.optimizer.learning_rate != 0;
    EXPECT_TRUE(!updates || c.dtype == reference::Dtype::F64) << c.id;
    EXPECT_TRUE(c.loss.kind == reference::LossKind::Sum || c.loss.kind == reference::LossKind::Output ||
                (c.loss.kind == reference::LossKind::Mse && c.dtype != reference::Dtype::BF16))
        << c.id;
    // Division must not round: it must be by powers of two. The size of a row is one.
    if (c.division != reference::Division::Nobody) {
      EXPECT_TRUE(is_power_of_two(c.microbatches)) << c.id;
    }
    if (c.loss.reduction != reference::Reduction::Sum) {
      EXPECT_EQ(c.rows % c.microbatches, 0) << c.id;
      EXPECT_TRUE(is_power_of_two(c.rows / c.microbatches)) << c.id;
    }
  }
}

TEST(Corpus, TrainingRunsTakeTwentySteps) {
  for (const char* id : {"train-mlp", "train-transformer"}) {
    const reference::Case c = select(corpus(), id).front();
    ASSERT_EQ(c.steps.size(), 60u);
    for (size_t i = 0; i < 60; i += 3) {
      EXPECT_EQ(c.steps[i], reference::StepKind::ZeroGrad);
      EXPECT_EQ(c.steps[i + 1], reference::StepKind::Train);
      EXPECT_EQ(c.steps[i + 2], reference::StepKind::Optimizer);
    }
    EXPECT_GT(c.optimizer.learning_rate, 0);
    EXPECT_GT(c.optimizer.momentum, 0);
  }
}

TEST(Corpus, AnotherNumberOfMicrobatchesDemotesOpenly) {
  std::string note;
  EXPECT_EQ(with_microbatches(find_case("exact-mlp-mean"), 3, note).truth, reference::Truth::SameOrder);
  EXPECT_NE(note, "");
  note.clear();
  EXPECT_EQ(with_microbatches(find_case("exact-mlp-mean"), 2, note).truth, reference::Truth::Exact);
  EXPECT_EQ(note, "");
}

TEST(Corpus, ProfilesAreParts) {
  EXPECT_EQ(ids(profile("core")), ids(corpus()));
  EXPECT_EQ(ids(profile("nightly")), ids(corpus()));
  EXPECT_EQ(profile("smoke").size(), smoke_cases().size());
  EXPECT_EQ(ids(profile("ranks")), ids(corpus()));
  EXPECT_EQ(ids(profile("stage-sizes")),
            (std::set<std::string>{"exact-lopsided", "lopsided", "exact-lopsided-gradients", "exact-lopsided-frozen",
                                   "exact-split-twice", "exact-split-twice-accumulate", "split-twice"}));
  for (const std::string& name : profile_names()) EXPECT_FALSE(profile(name).empty()) << name;
  EXPECT_EQ(testing::refusal([] { profile("crore"); }).find("profile: no profile is named 'crore'; nearest: core, "),
            0);
}

/// The table of docs/corpus.md: the backquoted words in its second column are patterns of cases.
TEST(Corpus, TheTableOfTargetsNamesEachCase) {
  const char* docs = std::getenv("PLUMBLINE_DOCS");
  if (!docs) GTEST_SKIP() << "PLUMBLINE_DOCS is not set";
  std::ifstream file(std::string(docs) + "/corpus.md");
  ASSERT_TRUE(file) << docs << "/corpus.md cannot be read";
  std::string line;
  while (std::getline(file, line) && line != "## What the cases catch") continue;
  std::set<std::string> named;
  int rows = 0;
  while (std::getline(file, line)) {
    if (!line.starts_with("| ") || line == "| target | cases |") continue;
    ++rows;
    const std::string cell = line.substr(line.rfind('|', line.size() - 2) + 1);
    bool has_pattern = false;
    for (size_t begin = cell.find('`'); begin != std::string::npos;) {
      const size_t end = cell.find('`', begin + 1);
      ASSERT_NE(end, std::string::npos) << line;
      has_pattern = true;
      EXPECT_NO_THROW(named.merge(ids(select(corpus(), cell.substr(begin + 1, end - begin - 1))))) << line;
      begin = cell.find('`', end + 1);
    }
    EXPECT_TRUE(has_pattern) << line;
  }
  EXPECT_GT(rows, 30);
  for (const reference::Case& c : corpus())
    EXPECT_TRUE(named.contains(c.id)) << c.id << " is in no row of docs/corpus.md";
}

TEST(Corpus, SelectsByPattern) {
  EXPECT_EQ(ids(select(corpus(), "exact-tied")), std::set<std::string>{"exact-tied"});
  EXPECT_EQ(ids(select(corpus(), "train-[mt]*")), (std::set<std::string>{"train-mlp", "train-transformer"}));
  EXPECT_EQ(ids(select(corpus(), "ml[pq]")), std::set<std::string>{"mlp"});
  EXPECT_EQ(ids(select(corpus(), "mlp,train-m*,ml[pq]")), (std::set<std::string>{"mlp", "train-mlp"}));
  EXPECT_EQ(select(corpus(), "*,mlp").size(), corpus().size());
  EXPECT_NE(testing::refusal([] { select(corpus(), "mlp,exct-tied"); }).find("'exct-tied'; nearest: exact-tied"),
            std::string::npos);
}

TEST(Corpus, ErrorsNameTheNearestIds) {
  const std::string text = testing::refusal([] { select(corpus(), "exct-tied"); });
  testing::expect_line(text, "case: no case matches 'exct-tied'; nearest: exact-tied, exact-tied-");
  testing::expect_line(testing::refusal([] { find_case("exact-mpl"); }),
                       "case: no case is named 'exact-mpl'; nearest: exact-mlp-sum, ");
  EXPECT_EQ(testing::refusal([] { select(profile("smoke"), "mlp"); }).find('\n'), std::string::npos);
}

}  // namespace
}  // namespace plumbline::conformance
