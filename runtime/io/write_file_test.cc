#include "runtime/io/write_file.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/testing/refusal.h"

namespace plumbline {
namespace {

TEST(WriteFile, ReplacesAppendsAndRefuses) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "text";
  write_file(path, "first");
  write_file(path, "second\n");
  append_file(path, "third\n");
  std::ifstream file(path);
  EXPECT_EQ((std::string{std::istreambuf_iterator<char>(file), {}}), "second\nthird\n");
  EXPECT_THROW(write_file(folder / "none" / "text", "x"), InputError);
  EXPECT_THROW(append_file(folder / "none" / "text", "x"), InputError);
}

TEST(WriteFile, FollowsNoLinkThatIsPlantedInItsPlace) {
  const TemporaryFolder folder("/dev/shm");  // thousands of links take seconds on a disk
  const std::filesystem::path elsewhere = folder / "elsewhere";
  write_file(elsewhere, "kept");
  const auto text_of = [](const std::filesystem::path& path) {
    std::ifstream file(path);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  // The names of temporary files can be guessed.
  for (int i = 0; i < 5000; ++i)
    std::filesystem::create_symlink(elsewhere,
                                    folder / ("text.tmp." + std::to_string(getpid()) + "." + std::to_string(i)));
  std::filesystem::create_symlink(elsewhere, folder / "text");
  write_file(folder / "text", "new");
  EXPECT_EQ(text_of(elsewhere), "kept");
  EXPECT_EQ(text_of(folder / "text"), "new");
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "text"));

  std::filesystem::create_symlink(elsewhere, folder / "log");
  EXPECT_EQ(testing::refusal([&] { append_file(folder / "log", "more"); }),
            "cannot write " + (folder / "log").string() + ": it is a symbolic link");
  EXPECT_EQ(text_of(elsewhere), "kept");
}

TEST(WriteFile, ReplacesNoDevice) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "null";
  if (mknod(path.c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) GTEST_SKIP() << "only root makes devices";
  EXPECT_EQ(testing::refusal([&] { write_file(path, "x"); }),
            "cannot write " + path.string() + ": it is a character device");
  EXPECT_TRUE(std::filesystem::is_character_file(path));
}

TEST(WriteFile, CreatesNoFoldersOutsideTheGivenOne) {
  const TemporaryFolder folder;
  create_folders(folder / ".", "inside");
  for (const std::string& below : std::vector<std::string>{"../other", "sub/../../other", (folder / "other").string()})
    EXPECT_EQ(testing::refusal([&] { create_folders(folder / "inside", below); }),
              "cannot write " + (folder / "inside" / below).string() + ": '" + below + "' leads out of the folder");
  EXPECT_FALSE(std::filesystem::exists(folder / "other") || std::filesystem::exists(folder / "inside/sub"));
}

TEST(WriteFile, CreatesFoldersButNotBehindALink) {
  const TemporaryFolder folder, elsewhere;
  create_folders(folder / ".", "a/b");
  create_folders(folder / ".", "a/b/c");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b/c"));
  std::filesystem::create_directory_symlink(elsewhere / ".", folder / "a/link");
  EXPECT_EQ(testing::refusal([&] { create_folders(folder / ".", "a/link/d"); }),
            "cannot write " + (folder / "./a/link").string() + ": it is a symbolic link");
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere / "."));
}

}  // namespace
}  // namespace plumbline
