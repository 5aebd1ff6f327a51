// What the tests of the program share: it is started in a folder of its own, as a user would.
// PLUMBLINE_PROGRAM names the executable; with PLUMBLINE_WITH_MPI=1 the parts that need mpirun run as well.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "conformance/process.h"
#include "runtime/temporary_folder.h"

namespace plumbline {

namespace fs = std::filesystem;

inline bool with_mpi() { return std::getenv("PLUMBLINE_WITH_MPI") != nullptr; }

class Cli : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(std::getenv("PLUMBLINE_PROGRAM"), nullptr) << "set PLUMBLINE_PROGRAM to the plumbline executable";
  }
  // Tests may lock it.
  void TearDown() override { fs::permissions(folder_.path(), fs::perms::owner_all); }

  ProcessResult start(std::vector<std::string> words, const std::vector<std::string>& before = {}) const {
    ProcessOptions options;
    options.argv = before;
    options.argv.push_back(std::getenv("PLUMBLINE_PROGRAM"));
    options.argv.insert(options.argv.end(), words.begin(), words.end());
    options.directory = folder_.path().string();
    options.timeout = std::chrono::minutes(4);
    options.environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                           {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                           {"OMPI_MCA_rmaps_base_oversubscribe", "1"}};
    return run_process(options);
  }

  std::string report(const std::string& name) const { return (folder_ / name).string(); }

  const TemporaryFolder folder_;
};

inline int exit_code(const ProcessResult& result) { return result.exit_code.value_or(-1); }

}  // namespace plumbline
