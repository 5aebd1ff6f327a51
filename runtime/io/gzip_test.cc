#include "runtime/io/gzip.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

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
            "cannot read " + folder_.string() + ": it is a folder; expected a file or a pipe");
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

TEST_F(Gzip, APipeIsReadToItsEnd) {
  const std::string text(300'000, 'x');
  write_text(path("packed.gz"), text);
  for (const std::string& sent : {text, bytes(path("packed.gz")), std::string()}) {
    ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
    std::thread writer([&] { std::ofstream(path("pipe"), std::ios::binary) << sent; });
    EXPECT_EQ(read_text(path("pipe")), sent.empty() ? sent : text);
    writer.join();
    fs::remove(path("pipe"));
  }
}

TEST_F(Gzip, APipeWithoutAWriterIsNotWaitedForForEver) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const auto read = [&] { return testing::refusal([&] { read_text(path("pipe"), std::chrono::seconds(1)); }); };
  const std::string expected = "cannot read " + path("pipe") + ": a pipe from which nothing came for 1 s";
  EXPECT_EQ(read(), expected);
  const int silent = open(path("pipe").c_str(), O_RDWR);
  ASSERT_EQ(write(silent, "text", 4), 4);
  EXPECT_EQ(read(), expected) << "after its first bytes";
  close(silent);
}

TEST_F(Gzip, WhatHasNoEndIsRefused) {
  EXPECT_EQ(testing::refusal([&] { read_text("/dev/zero"); }),
            "cannot read /dev/zero: it is a character device; expected a file or a pipe");
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  std::signal(SIGPIPE, SIG_IGN);
  std::thread writer([&] {
    std::ofstream pipe(path("pipe"), std::ios::binary);
    for (const std::string zeros(size_t{1} << 20, 0); pipe << zeros;) {
    }
  });
  EXPECT_EQ(testing::refusal([&] { read_text(path("pipe")); }),
            "cannot read " + path("pipe") + ": a pipe of more than 1 GiB");
  writer.join();
  std::signal(SIGPIPE, SIG_DFL);
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
