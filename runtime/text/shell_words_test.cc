// Words of a command, against those that the shell of this machine finds.
#include "runtime/text/shell_words.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>

#include "runtime/testing/refusal.h"

namespace plumbline {
namespace {

/// Each word with a line end, as `sh` divides the line.
std::string words_of_sh(const std::string& line) {
  const std::string command = "printf '%s\\n' " + line;
  const std::unique_ptr<FILE, int (*)(FILE*)> shell(popen(command.c_str(), "r"), pclose);
  std::string output;
  std::array<char, 256> part;
  while (std::fgets(part.data(), part.size(), shell.get()) != nullptr) output += part.data();
  return output;
}

TEST(ShellWords, AreThoseOfAShell) {
  for (const char* line :
       {R"(mpirun -n 4)", R"(a  'b c' "d e"f	g)", R"("C:\dir\n" 'C:\dir' C:\dir)", R"("a\"b" "a\\b" "a\$b" "a\`b")",
        R"("a\'b\x\ y")", R"('a\b' \'a\ b)", R"("" '' a'b'"c"\d)", R"("a'b" 'a"b')"}) {
    std::string ours;
    for (const std::string& word : shell_words(line, "--launcher")) ours += word + "\n";
    EXPECT_EQ(ours, words_of_sh(line)) << line;
  }
}

TEST(ShellWords, AnOpenQuoteIsRefused) {
  EXPECT_EQ(testing::refusal([] { shell_words("a \"b", "--launcher"); }),
            "--launcher: a quote \" is not closed in: a \"b");
  EXPECT_EQ(testing::refusal([] { shell_words("a 'b\\'' c", "--launcher"); }),
            "--launcher: a quote ' is not closed in: a 'b\\'' c");
}

}  // namespace
}  // namespace plumbline
