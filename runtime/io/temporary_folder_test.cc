#include "runtime/io/temporary_folder.h"

#include <gtest/gtest.h>

#include <fstream>

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

}  // namespace
}  // namespace plumbline
