#include "runtime/text/join.h"

#include <gtest/gtest.h>

#include <array>
#include <ranges>
#include <set>
#include <vector>

namespace plumbline {
namespace {

TEST(Join, PutsTheSeparatorBetweenWordsOnly) {
  EXPECT_EQ(join(std::vector<std::string>{}), "");
  EXPECT_EQ(join(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(join(std::vector<std::string>{"a", "bc", "d"}), "a, bc, d");
  EXPECT_EQ(join(std::vector<std::string>{"a", "bc", "d"}, "/"), "a/bc/d");
  EXPECT_EQ(join(std::vector<std::string>{"", "", "a", ""}), ", , a, ") << "an empty word is a word";
}

TEST(Join, TakesAnyRangeOfTexts) {
  EXPECT_EQ(join(std::set<std::string>{"b", "a"}), "a, b");
  EXPECT_EQ(join(std::array<std::string_view, 2>{"a", "b"}, ""), "ab");
  const char* const texts[] = {"a", "b"};
  EXPECT_EQ(join(texts, " or "), "a or b");
  const std::vector<int> numbers = {1, 22, 3};
  EXPECT_EQ(join(numbers | std::views::transform([](int number) { return std::to_string(number); })), "1, 22, 3");
}

}  // namespace
}  // namespace plumbline
