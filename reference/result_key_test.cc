#include "reference/result_key.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "runtime/error.h"

namespace plumbline::reference {
namespace {

TEST(ResultKey, TextAndBack) {
  const ResultKey key{0, ResultKind::Backward, 2, 3, "v17"};
  EXPECT_EQ(to_string(key), "0/backward/2/3/v17");
  EXPECT_EQ(parse_result_key("0/backward/2/3/v17"), key);
  EXPECT_EQ(parse_result_key("12/grad/-/-/a/b c.weight"), (ResultKey{12, ResultKind::Grad, -1, -1, "a/b c.weight"}));
}

TEST(ResultKey, RefusesOtherText) {
  for (const char* text : {"", "0", "0/grad/-/-", "0/grad/-/-/", "x/grad/-/-/w", "-/grad/-/-/w", "-1/grad/-/-/w",
                           "0/Grad/-/-/w", "0/gradient/-/-/w", "00/grad/-/-/w", "0/forward/-1/0/v", "0/forward/1/+2/v",
                           "0/forward/1//v", "0/forward/1/2x/v", " 0/forward/1/2/v", "0/forward/99999999999/2/v"})
    EXPECT_THROW(parse_result_key(text), InputError) << text;
}

TEST(ResultKey, CausalOrder) {
  // Derived by hand from the definition.
  const std::vector<std::string> ordered = {"0/forward/0/0/a",  "0/forward/1/0/b",
                                            "0/forward/1/0/c",  "0/forward/2/0/a",
                                            "0/output/2/0/0",   "0/forward/0/1/a",
                                            "0/forward/1/1/b",  "0/output/-/1/0",
                                            "0/loss/2/0/loss",  "0/loss/2/1/loss",
                                            "0/backward/2/0/x", "0/partial/2/0/w",
                                            "0/backward/1/0/x", "0/partial/1/0/w",
                                            "0/partial/0/0/w",  "0/backward/2/1/x",
                                            "0/partial/0/1/w",  "0/grad/-/-/a",
                                            "0/grad/-/-/b",     "0/buffer/-/-/a",
                                            "0/param/-/-/a",    "0/optimizer-state/-/-/a/step",
                                            "1/forward/0/0/a",  "2/forward/0/0/a",
                                            "10/forward/0/0/a"};
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::vector<ResultKey> keys;
  for (const std::string& text : ordered) keys.push_back(parse_result_key(text));
  std::shuffle(keys.begin(), keys.end(), std::mt19937(seed));
  std::sort(keys.begin(), keys.end(), causal_less);
  std::vector<std::string> sorted;
  for (const ResultKey& key : keys) sorted.push_back(to_string(key));
  EXPECT_EQ(sorted, ordered);
}

}  // namespace
}  // namespace plumbline::reference
