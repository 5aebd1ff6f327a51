#include "runtime/io/gzip.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/testing/refusal.h"

namespace plumbline {
namespace {

namespace fs = std::filesystem;

class Gzip : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("plumbline_gzip_test." + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string bytes(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }

  fs::path folder_;
};

TEST_F(Gzip, PacksByName) {
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += "line " + std::to_string(i % 1000) + "\n";
  for (const char* name : {"a.json", "a.json.gz", "empty.gz", "empty"}) {
    const std::string& said = std::string(name).starts_with("empty") ? std::string() : text;
    write_text(path(name), said);
    EXPECT_EQ(read_text(path(name)), said) << name;
  }
  EXPECT_EQ(bytes(path("a.json")), text);
  EXPECT_LT(bytes(path("a.json.gz")).size(), text.size() / 20);
  EXPECT_EQ(bytes(path("a.json.gz")).substr(0, 2), "\x1f\x8b");
}

TEST_F(Gzip, SaysWhatIsDamaged) {
  write_text(path("a.gz"), std::string(10'000, 'x') + "end of the text");
  const std::string whole = bytes(path("a.gz"));
  std::ofstream(path("cut.gz"), std::ios::binary) << whole.substr(0, whole.size() / 2);
  std::string wrong = whole;
  wrong[wrong.size() - 6] ^= 1;  // the checksum at the end
  std::ofstream(path("wrong.gz"), std::ios::binary) << wrong;
  for (const char* name : {"cut.gz", "wrong.gz"})
    EXPECT_NE(testing::refusal([&] { read_text(path(name)); }).find(path(name) + ": damaged gzip"), std::string::npos)
        << name;
  EXPECT_EQ(testing::refusal([&] { read_text(path("none")); }),
            "cannot read " + path("none") + ": No such file or directory");
  EXPECT_EQ(testing::refusal([&] { read_text(folder_.string()); }),
            "cannot read " + folder_.string() + ": Is a directory");
  EXPECT_EQ(testing::refusal([&] { write_text(path("none/a.gz"), "x"); }),
            "cannot write " + path("none/a.gz") + ": No such file or directory");
}

TEST_F(Gzip, ABombIsRefusedBeforeItIsUnpacked) {
  const std::string text(size_t{80} << 20, 'x');
  write_text(path("a.gz"), text);
  EXPECT_EQ(testing::refusal([&] { read_text(path("a.gz")); }),
            "cannot read " + path("a.gz") + ": it unpacks to more than 200 times its bytes");
  write_text(path("a"), text);
  EXPECT_EQ(read_text(path("a")), text);
}

TEST_F(Gzip, WhatCannotBeWrittenWholeLeavesWhatWasThere) {
  write_text(path("a.json"), "what was there");
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{100'000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string long_text(5'000'000, 'x');
  for (const char* name : {"a.json", "new.json"})
    EXPECT_EQ(testing::refusal([&] { write_text(path(name), long_text); }),
              "cannot write " + path(name) + ": File too large");
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(read_text(path("a.json")), "what was there");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1) << "nothing else is left";
}

TEST_F(Gzip, WhatIsNoFileIsWrittenTo) {
  write_text("/dev/null", "text");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  write_text(path("a.json"), "old");
  fs::create_symlink("a.json", folder_ / "link.json");
  write_text(path("link.json"), "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link.json"));
  EXPECT_EQ(read_text(path("a.json")), "new");
}

}  // namespace
}  // namespace plumbline
