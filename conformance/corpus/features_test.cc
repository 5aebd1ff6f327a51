// The features of the cases: each is used, and agrees with the case's fields.
#include "conformance/corpus/features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "conformance/corpus/corpus.h"

namespace plumbline::conformance {
namespace {

/// Axes with exclusive features: each case has exactly one of them.
TEST(Features, EachCaseHasOneOfEachExclusiveAxis) {
  const std::vector<std::vector<std::string>> axes = {
      {"exact", "same-order", "bounded"},
      {"sum", "mean"},
      {"mlp", "transformer", "encoder-decoder", "experts", "recurrent", "convolution"},
  };
  for (const reference::Case& c : corpus())
    for (const std::vector<std::string>& axis : axes)
      EXPECT_EQ(std::ranges::count_if(axis, [&](const std::string& name) { return has_feature(c, name); }), 1)
          << c.id << ", of " << axis.front() << " and others";
}

TEST(Features, EachIsNamedOnceAndHasCases) {
  std::set<std::string> names;
  for (const Feature& feature : features()) {
    EXPECT_TRUE(names.insert(feature.name).second) << feature.name;
    EXPECT_FALSE(feature.what.empty());
    EXPECT_TRUE(std::ranges::any_of(corpus(), [&](const reference::Case& c) { return has_feature(c, feature.name); }))
        << "no case has " << feature.name;
  }
}

TEST(Features, ComeFromFieldsAndModels) {
  EXPECT_EQ(features_of(find_case("exact-tied-uneven")),
            (std::vector<std::string>{"exact", "mlp", "shared", "integers", "uneven", "sum", "f32"}));
  EXPECT_EQ(features_of(find_case("train-freeze")),
            (std::vector<std::string>{"same-order", "mlp", "mean", "f32", "freezing", "optimizer"}));
  EXPECT_EQ(features_of(find_case("mlp-f16")), (std::vector<std::string>{"same-order", "mlp", "mean", "f16"}));
}

/// Each family of models in each precision.
TEST(Features, EachFamilyExistsInEachNarrowDtype) {
  for (const char* family :
       {"mlp", "transformer", "encoder-decoder", "convolution", "buffers", "u-net", "experts", "recurrent", "mixed"})
    for (const char* dtype : {"f32", "f16", "bf16"})
      EXPECT_TRUE(std::ranges::any_of(
          corpus(), [&](const reference::Case& c) { return has_feature(c, family) && has_feature(c, dtype); }))
          << family << " in " << dtype;
}

/// Pairs of features that interact: some case of the corpus has both.
TEST(Features, PairsOfAxesMeet) {
  const std::pair<const char*, const char*> pairs[] = {{"shared", "freezing"},
                                                       {"shared", "one-microbatch"},
                                                       {"skips", "recompute"},
                                                       {"hooks", "recompute"},
                                                       {"uneven", "replicated"},
                                                       {"none", "uneven"},
                                                       {"frozen", "recompute"},
                                                       {"views", "f16"},
                                                       {"random", "recompute"},
                                                       {"buffers", "own-schedule"},
                                                       {"random", "own-schedule"},
                                                       {"other-dimension", "uneven"},
                                                       {"shared", "optimizer"},
                                                       {"shared", "own-schedule"},
                                                       {"keywords", "replicated"},
                                                       {"input-gradients", "uneven"},
                                                       {"input-gradients", "frozen"},
                                                       {"accumulation", "unused"},
                                                       {"bf16", "hooks"},
                                                       {"none", "keywords"},
                                                       {"none", "input-gradients"},
                                                       {"none", "optimizer"},
                                                       {"none", "recompute"},
                                                       {"dicts", "uneven"},
                                                       {"dicts", "loss-inside"},
                                                       {"other-dimension", "input-gradients"},
                                                       {"other-dimension", "keywords"},
                                                       {"stage-sizes", "shared"},
                                                       {"evaluation", "other-dimension"}};
  for (const auto& [a, b] : pairs)
    EXPECT_TRUE(
        std::ranges::any_of(corpus(), [&](const reference::Case& c) { return has_feature(c, a) && has_feature(c, b); }))
        << a << " with " << b;
}

}  // namespace
}  // namespace plumbline::conformance
