#include "runtime/text/one_line.h"

#include <gtest/gtest.h>

namespace plumbline {
namespace {

TEST(OneLine, ControlCharactersAreShown) {
  EXPECT_EQ(one_line("a\nb\tc\rd"), "a b c d");
  EXPECT_EQ(one_line(std::string_view("\x1b[2J\x7f\0", 6)), "\\x1b[2J\\x7f\\x00");
  EXPECT_EQ(one_line("\u009b2J"), "\\u009b2J") << "a terminal may take it for ESC [";
  EXPECT_EQ(one_line("a\u2028b\u202ec\u2066d\u200f"), "a\\u2028b\\u202ec\\u2066d\\u200f");
}

TEST(OneLine, OtherCharactersStay) {
  const std::string text = "\u00a0 \u00e9 \u20ac \u2027\u202f \U0001f600 \xff\xc2 \xe2\x80";
  EXPECT_EQ(one_line(text), text);
}

}  // namespace
}  // namespace plumbline
