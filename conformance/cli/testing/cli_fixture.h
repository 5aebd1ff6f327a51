// The fixture of the program's tests: it starts the program in a temporary folder, as a user would.
// PLUMBLINE_PROGRAM names the executable; with PLUMBLINE_WITH_MPI=1 the parts that need mpirun run as well.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "conformance/protocol/process/process.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/testing/in_full.h"

namespace plumbline::cli {

namespace fs = std::filesystem;

inline bool with_mpi() { return std::getenv("PLUMBLINE_WITH_MPI") != nullptr; }

/// Whether the mpirun of the path is Open MPI's.
inline bool with_open_mpi() {
  if (!with_mpi()) return false;
  conformance::ProcessOptions version;
  version.argv = {"mpirun", "--version"};
  return conformance::run_process(version).output.find("Open MPI") != std::string::npos;
}

inline int exit_code(const conformance::ProcessResult& result) { return result.exit_code.value_or(-1); }

inline bool has(const conformance::ProcessResult& result, const std::string& text) {
  return result.output.find(text) != std::string::npos;
}

/// Command lines, and what is said of each.
using Refusals = std::vector<std::pair<std::vector<std::string>, std::string>>;

/// Every third item from item `first` on, or all of them: most command lines start LibTorch. Three samples, from items
/// 0, 1 and 2 on, have all items.
template <class Item>
std::vector<Item> some_of(const std::vector<Item>& items, size_t first = 0) {
  std::vector<Item> some;
  for (size_t i = 0; i < items.size(); ++i)
    if (testing::in_sample(i, 3, first)) some.push_back(items[i]);
  return some;
}

class Cli : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(std::getenv("PLUMBLINE_PROGRAM"), nullptr) << "set PLUMBLINE_PROGRAM to the plumbline executable";
  }
  // Tests may remove permissions.
  void TearDown() override { fs::permissions(folder_.path(), fs::perms::owner_all); }

  conformance::ProcessResult start(std::vector<std::string> words, const std::vector<std::string>& before = {}) const {
    conformance::ProcessOptions options;
    options.argv = before;
    options.argv.push_back(std::getenv("PLUMBLINE_PROGRAM"));
    options.argv.insert(options.argv.end(), words.begin(), words.end());
    options.directory = folder_.path().string();
    options.timeout = std::chrono::minutes(4);
    options.environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                           {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                           {"OMPI_MCA_rmaps_base_oversubscribe", "1"}};
    return conformance::run_process(options);
  }

  /// Expects each command line to end with exit code 2 and one line that contains the text beside it.
  void expect_refused(const Refusals& refusals) const {
    for (const auto& [words, expected] : refusals) {
      const conformance::ProcessResult result = start(words);
      std::string line;
      for (const std::string& word : words) line += word + " ";
      EXPECT_EQ(exit_code(result), 2) << line << "\n" << result.output;
      EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 1) << line << "\n" << result.output;
      EXPECT_NE(result.output.find(expected), std::string::npos) << line << "\n" << result.output;
    }
  }

  std::string report(const std::string& name) const { return (folder_ / name).string(); }

  const TemporaryFolder folder_;
};

}  // namespace plumbline::cli
