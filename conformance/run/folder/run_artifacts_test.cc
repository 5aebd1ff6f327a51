#include "conformance/run/folder/run_artifacts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/io/temporary_folder.h"
#include "runtime/io/write_file.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kNobody = 65534;

/// A report folder with what one run has left.
class Artifacts : public ::testing::Test {
 protected:
  Artifacts() {
    for (const char* file : {"1f1b/mlp/rank0.safetensors", "cases/1f1b/mlp/case.json", "logs/1f1b/mlp/backend.log",
                             "1f1b/other/rank0.safetensors"}) {
      fs::create_directories((out_ / file).parent_path());
      write_file(out_ / file, "x");
    }
  }

  const TemporaryFolder folder_;
  const ReportFolder report_{folder_.path()};
  const PlannedRun run_{{"mlp", "1f1b", 2, "own"}, {}, {}};
  const fs::path out_ = folder_ / "results/own-2";
};

TEST_F(Artifacts, OfTheRunAloneAreRemoved) {
  EXPECT_EQ(remove_artifacts(run_, report_), "");
  for (const char* gone : {"1f1b/mlp", "cases/1f1b/mlp", "logs/1f1b/mlp"})
    EXPECT_FALSE(fs::exists(out_ / gone)) << gone;
  EXPECT_TRUE(fs::exists(out_ / "1f1b/other/rank0.safetensors"));
  EXPECT_EQ(remove_artifacts(run_, report_), "") << "there is nothing any more";
}

TEST_F(Artifacts, BehindALinkStay) {
  fs::rename(out_ / "1f1b", folder_ / "elsewhere");
  fs::create_directory_symlink(folder_ / "elsewhere", out_ / "1f1b");
  EXPECT_EQ(remove_artifacts(run_, report_),
            "cannot read " + (out_ / "1f1b").string() + ": it is a symbolic link; expected a folder");
  EXPECT_TRUE(fs::exists(folder_ / "elsewhere/mlp/rank0.safetensors"));
  EXPECT_FALSE(fs::exists(out_ / "cases/1f1b/mlp")) << "the others are removed";
}

TEST_F(Artifacts, ThatCannotBeRemovedAreTold) {
  fs::permissions(folder_.path(), fs::perms(0755));
  fs::permissions(out_ / "1f1b", fs::perms(0555));
  const bool is_root = geteuid() == 0;
  if (is_root) {
    ASSERT_EQ(seteuid(kNobody), 0);
  }
  const std::string why = remove_artifacts(run_, report_);
  if (is_root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  fs::permissions(out_ / "1f1b", fs::perms(0755));
  EXPECT_EQ(why, "cannot remove " + (out_ / "1f1b/mlp").string() + ": Permission denied");
}

}  // namespace
}  // namespace plumbline::conformance
