#include "conformance/run/folder/result_seal.h"

#include <gtest/gtest.h>

#include <fstream>

#include "runtime/io/temporary_folder.h"
#include "runtime/io/tensor_file.h"
#include "runtime/io/write_file.h"
#include "runtime/testing/refusal.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;

class Seal : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(folder_ / "case");
    write_file(rank(0), "first");
    write_file(rank(1), "second");
  }
  fs::path rank(int number) const { return folder_ / ("case/rank" + std::to_string(number)); }
  std::vector<fs::path> list() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_ / "case")) files.push_back(entry.path());
    return files;
  }
  ResultSeal sealed() const {
    return {folder_.path(), [this] { return list(); }};
  }
  static void expect_broken(const ResultSeal& seal, const fs::path& file, const std::string& how) {
    testing::expect_line(seal.why_broken(), file.string() + ": " + how + " after its case was done");
  }

  const TemporaryFolder folder_;
};

TEST_F(Seal, HoldsWhileTheBytesAreTheSame) {
  const ResultSeal seal = sealed();
  EXPECT_EQ(seal.why_broken(), "");
  write_file(rank(0), "first");
  fs::permissions(rank(1), fs::perms::owner_read);
  EXPECT_EQ(seal.why_broken(), "") << "written again, with the same bytes";
}

TEST_F(Seal, BreaksWithEveryChange) {
  const ResultSeal seal = sealed();
  write_file(rank(1), "Second");
  expect_broken(seal, rank(1), "changed");
  write_file(rank(1), "second");
  std::ofstream(rank(0), std::ios::in | std::ios::out) << "F";  // in place, within a tick of the clock
  expect_broken(seal, rank(0), "changed");
  write_file(rank(0), "first");
  EXPECT_EQ(seal.why_broken(), "");
  write_file(rank(2), "late");
  expect_broken(seal, rank(2), "added");
  fs::remove(rank(2));
  fs::remove(rank(0));
  expect_broken(seal, rank(0), "removed");
  fs::create_symlink("rank1", rank(0));
  expect_broken(seal, rank(0), "changed");
}

TEST_F(Seal, OfAFileThatCannotBeReadIsBrokenByOneThatCan) {
  fs::remove(rank(0));
  fs::create_symlink("rank1", rank(0));
  const ResultSeal seal = sealed();
  EXPECT_EQ(seal.why_broken(), "");
  fs::remove(rank(0));
  write_file(rank(0), "first");
  expect_broken(seal, rank(0), "changed");
}

TEST_F(Seal, OfALargeFileIsItsIdentity) {
  fs::resize_file(rank(0), uint64_t{1} << 40);  // a hole, which would take long to read
  const ResultSeal seal = sealed();
  EXPECT_EQ(seal.why_broken(), "");
  fs::last_write_time(rank(0), fs::last_write_time(rank(0)) + std::chrono::seconds(1));
  expect_broken(seal, rank(0), "changed");
}

}  // namespace
}  // namespace plumbline::conformance
