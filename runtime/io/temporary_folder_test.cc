#include "runtime/io/temporary_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "runtime/testing/refusal.h"

namespace plumbline {
namespace {

namespace fs = std::filesystem;

TEST(TemporaryFolder, IsOnesOwnAndLeavesNothing) {
  fs::path first, second;
  {
    const TemporaryFolder one, two;
    first = one.path();
    second = two.path();
    EXPECT_NE(first, second);
    EXPECT_TRUE(fs::is_empty(first));
    fs::create_directories(one / "deep/er");
    std::ofstream(one / "deep/er/file") << "text";
    EXPECT_TRUE(fs::exists(first / "deep" / "er" / "file"));
    EXPECT_TRUE(fs::is_empty(second));
  }
  EXPECT_FALSE(fs::exists(first));
  EXPECT_FALSE(fs::exists(second));
}

TEST(TemporaryFolder, NamesTheVariableThatNamesNoFolder) {
  const char* const before = std::getenv("TMPDIR");
  const std::string restored = before == nullptr ? "" : before;
  setenv("TMPDIR", "/nonexistent", 1);
  EXPECT_EQ(testing::failure([] { TemporaryFolder(); }),
            "cannot create a temporary folder: TMPDIR does not name a folder");
  before == nullptr ? unsetenv("TMPDIR") : setenv("TMPDIR", restored.c_str(), 1);
}

}  // namespace
}  // namespace plumbline
