#include "runtime/text/number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace plumbline {
namespace {

TEST(Number, IsAllOfTheText) {
  EXPECT_EQ(parse_number<int>("0"), 0);
  EXPECT_EQ(parse_number<int>("-12"), -12);
  EXPECT_EQ(parse_number<int>("007"), 7);
  EXPECT_EQ(parse_number<uint64_t>("18446744073709551615"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(parse_number<double>("-2.5e1"), -25);
  EXPECT_EQ(parse_number<double>("inf"), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(parse_number<double>("nan").value()));
  for (const char* text : {"", " ", " 1", "1 ", "+1", "0x10", "1,000", "-", "--1", "one", "1.5", "1e2"})
    EXPECT_FALSE(parse_number<int>(text)) << text;
  for (const char* text : {"", " 1.5", "1.5 ", "+1.5", "0x1p3", "1.5.2", "1,5", "e2"})
    EXPECT_FALSE(parse_number<double>(text)) << text;
}

TEST(Number, IsInRange) {
  EXPECT_EQ(parse_number<int8_t>("127"), 127);
  EXPECT_FALSE(parse_number<int8_t>("128"));
  EXPECT_FALSE(parse_number<int>("2147483648"));
  EXPECT_FALSE(parse_number<uint64_t>("-1"));
  EXPECT_FALSE(parse_number<uint64_t>("18446744073709551616"));
  EXPECT_FALSE(parse_number<double>("1e400"));
}

TEST(Number, IsTakenFromTheFront) {
  std::string_view text = "3-4=2.5";
  EXPECT_EQ(take_number<int>(text), 3);
  EXPECT_EQ(text, "-4=2.5");
  EXPECT_EQ(take_number<int>(text), -4);
  EXPECT_EQ(text, "=2.5");
  EXPECT_FALSE(take_number<double>(text));
  EXPECT_EQ(text, "=2.5") << "unchanged";
  text.remove_prefix(1);
  EXPECT_EQ(take_number<double>(text), 2.5);
  EXPECT_EQ(text, "");
  EXPECT_FALSE(take_number<int>(text));
  text = "99999999999 begins";
  EXPECT_FALSE(take_number<int>(text));
  EXPECT_EQ(text, "99999999999 begins") << "unchanged";
}

}  // namespace
}  // namespace plumbline
