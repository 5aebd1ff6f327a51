#include "runtime/text/near_names.h"

#include <gtest/gtest.h>

namespace plumbline {
namespace {

using Names = std::vector<std::string>;

TEST(NearNames, FewerEditsAreNearer) {
  EXPECT_EQ(near_names({"kitten", "sitten", "sittin", "sitting", "mitt"}, "sitting"),
            (Names{"sitting", "sittin", "sitten"}));
  EXPECT_EQ(near_names({"a"}, "b"), Names{"a"});
  EXPECT_EQ(near_names({}, "b"), Names{});
}

TEST(NearNames, SwappedNeighboursAreOneEdit) {
  // From "zb" to "ba" two letters are replaced; to "bz" two are swapped, which is nearer.
  EXPECT_EQ(near_names({"ba", "bz"}, "zb").front(), "bz");
  // Each letter may be edited only once, so "ca" to "abc" takes three edits, as many as to "xyz".
  EXPECT_EQ(near_names({"xyz", "abc"}, "ca").front(), "xyz");
}

TEST(NearNames, SomeWordsOfAName) {
  const Names ids = {"exact-relu", "exact-tied", "exact-mlp-mean", "exact-mlp-sum", "transformer-lm", "dropout"};
  EXPECT_EQ(near_names(ids, "exact-mpl"), (Names{"exact-mlp-sum", "exact-mlp-mean", "exact-relu"}));
  EXPECT_EQ(near_names(ids, "mlp-mean").front(), "exact-mlp-mean");
  EXPECT_EQ(near_names(ids, "transfromer").front(), "transformer-lm");
  EXPECT_EQ(near_names({"b-a-b", "a-b"}, "a-b").front(), "a-b") << "as a whole";
  EXPECT_EQ(near_names({"c-a", "b-a"}, "a"), (Names{"c-a", "b-a"})) << "as they stand";
}

}  // namespace
}  // namespace plumbline
