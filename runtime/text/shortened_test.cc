#include "runtime/text/shortened.h"

#include <gtest/gtest.h>

namespace plumbline {
namespace {

TEST(Shortened, TextIsWholeUpToItsLimit) {
  EXPECT_EQ(shortened(""), "");
  EXPECT_EQ(shortened(std::string(548, 'x')), std::string(548, 'x'));
  EXPECT_EQ(shortened(std::string(549, 'x')), std::string(500, 'x') + "... (49 more characters)");
  EXPECT_EQ(shortened(std::string(60, 'x'), 2), "xx... (58 more characters)");
}

TEST(Shortened, IsNotShortenedAgain) {
  for (const size_t size : {549u, 1000u, 100'000u, 10'000'000u}) {
    const std::string once = shortened(std::string(size, 'x'));
    EXPECT_LT(once.size(), 549u);
    EXPECT_EQ(shortened(once), once);
  }
}

TEST(Shortened, NoCharacterIsCut) {
  const std::string rest(60, 'y');
  EXPECT_EQ(shortened("a\u00e9\u20ac\u00e9" + rest, 2), "a... (63 more characters)");
  EXPECT_EQ(shortened("a\u00e9\u20ac\u00e9" + rest, 3), "a\u00e9... (62 more characters)");
  EXPECT_EQ(shortened("\xff\xfe\xfd" + rest, 1), "\xff... (62 more characters)") << "not UTF-8";
}

}  // namespace
}  // namespace plumbline
