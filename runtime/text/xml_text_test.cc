#include "runtime/text/xml_text.h"

#include <gtest/gtest.h>

namespace plumbline {
namespace {

TEST(XmlText, KeepsTextAndReplacesWhatXmlCannotHold) {
  EXPECT_EQ(xml_characters("a\tb\nc <&> \"\u00e9\u20ac\U0001f600"), "a\tb\nc <&> \"\u00e9\u20ac\U0001f600");
  EXPECT_EQ(xml_characters(std::string_view("\0\x1b[0m\x7f", 6)), "\\x00\\x1b[0m\\x7f");
  EXPECT_EQ(xml_characters("\xff|\xc3|\xc0\xaf|\xed\xa0\x80|\xef\xbf\xbe"),
            "\ufffd|\ufffd|\ufffd\ufffd|\ufffd\ufffd\ufffd|\ufffd\ufffd\ufffd");
  EXPECT_EQ(xml_escaped("<a b=\"c\">&'"), "&lt;a b=&quot;c&quot;&gt;&amp;'");
}

}  // namespace
}  // namespace plumbline
