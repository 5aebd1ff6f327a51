#include "runtime/text/shortened.h"

#include <gtest/gtest.h>

namespace plumbline {
namespace {

TEST(Shortened, TextIsWholeUpToItsLimit) {
  EXPECT_EQ(shortened(""), "");
  EXPECT_EQ(shortened(std::string(500, 'x')), std::string(500, 'x'));
  EXPECT_EQ(shortened(std::string(501, 'x')), std::string(500, 'x') + "... (1 more characters)");
  EXPECT_EQ(shortened("abcdef", 2), "ab... (4 more characters)");
}

TEST(Shortened, NoCharacterIsCut) {
  EXPECT_EQ(shortened("a\u00e9\u20ac\u00e9", 2), "a... (3 more characters)");
  EXPECT_EQ(shortened("a\u00e9\u20ac\u00e9", 3), "a\u00e9... (2 more characters)");
  EXPECT_EQ(shortened("\xff\xfe\xfd", 1), "\xff... (2 more characters)") << "not UTF-8";
}

}  // namespace
}  // namespace plumbline
