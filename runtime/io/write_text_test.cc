#include "runtime/io/write_text.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"

namespace plumbline {
namespace {

TEST(XmlText, KeepsTextAndReplacesWhatXmlCannotHold) {
  EXPECT_EQ(xml_characters("a\tb\nc <&> \"\u00e9\u20ac\U0001f600"), "a\tb\nc <&> \"\u00e9\u20ac\U0001f600");
  EXPECT_EQ(xml_characters(std::string_view("\0\x1b[0m\x7f", 6)), "\\x00\\x1b[0m\\x7f");
  EXPECT_EQ(xml_characters("\xff|\xc3|\xc0\xaf|\xed\xa0\x80|\xef\xbf\xbe"),
            "\ufffd|\ufffd|\ufffd\ufffd|\ufffd\ufffd\ufffd|\ufffd\ufffd\ufffd");
  EXPECT_EQ(xml_escaped("<a b=\"c\">&'"), "&lt;a b=&quot;c&quot;&gt;&amp;'");
}

TEST(TextFile, ReplacesAppendsAndRefuses) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "text";
  write_text_file(path, "first");
  write_text_file(path, "second\n");
  append_text_file(path, "third\n");
  std::ifstream file(path);
  EXPECT_EQ((std::string{std::istreambuf_iterator<char>(file), {}}), "second\nthird\n");
  EXPECT_THROW(write_text_file(folder / "none" / "text", "x"), InputError);
  EXPECT_THROW(append_text_file(folder / "none" / "text", "x"), InputError);
}

}  // namespace
}  // namespace plumbline
