// Compares simulate_memory() with measured peaks: eight transformer blocks (testdata/attn_eight_blocks), run in each
// mode by an executor that frees at last use, with every allocation counted (LibTorch 2.11, CPU). Parameters and the
// input were allocated before and are not counted.
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/partition/budget/memory.h"
#include "runtime/partition/extract.h"
#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/parity/partition_mode.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/testing/golden_files.h"

namespace plumbline::partition {
namespace {

constexpr int64_t kEagerKiB = 143'548;  ///< measured in the same way, with autograd alone

struct Measured {
  const char* mode;
  int64_t kib;
};

class EightBlocks : public ::testing::Test {
 protected:
  static MemoryProfile simulate(const std::string& mode) {
    static const JointGraphFile file =
        read_joint_graph_file(std::filesystem::path(PLUMBLINE_PARTITION_TESTDATA) / "attn_eight_blocks.json.gz");
    const JointGraph& graph = file.graphs.at(file.variants.at("2.15.0/aten").graph);
    return simulate_memory(partition(graph, load_policy("torch-2.15"), parse_partition_mode(mode)));
  }
};

TEST_F(EightBlocks, TakeWhatWasMeasured) {
  for (const auto& [mode, kib] : {Measured{"default", 143'036},
                                  {"min-cut", 143'036},
                                  {"aggressive", 120'900},
                                  {"budget=0.5", 88'132},
                                  {"budget=0.25", 57'924},
                                  {"budget=0.1", 40'524},
                                  {"budget=0", 143'036}}) {
    const MemoryProfile profile = simulate(mode);
    EXPECT_EQ(profile.peak, kib * 1024) << mode;
  }
}

TEST_F(EightBlocks, PlannedByPeakTakeAtMostTwentyEightHundredthsOfEager) {
  EXPECT_LE(simulate("budget=0.1:peak").peak * 100, kEagerKiB * 1024 * 28);
  EXPECT_LE(simulate("budget=0:peak").peak * 100, kEagerKiB * 1024 * 24);
  EXPECT_LE(simulate("budget=0.25:peak").peak, simulate("budget=0.25").peak);
  EXPECT_LE(simulate("budget=0.5:peak").peak, simulate("budget=0.5").peak);
}

/// Saving what eager mode saves is one of the plans, so a full budget is never worse than that.
TEST(MemoryGolden, AFullBudgetByPeakTakesNoMoreThanTheDefaultMode) {
  for (const JointGraphFile& file : golden_files())
    for (const auto& [key, variant] : file.variants) {
      const JointGraph& graph = file.graphs.at(variant.graph);
      if (has_recompute_tags(graph)) continue;  // tags that force saving or recomputing may cost memory
      const Policy policy = load_policy("torch-" + key.substr(0, key.rfind('.')));
      const auto peak = [&](const char* mode) {
        return simulate_memory(partition(graph, policy, parse_partition_mode(mode))).peak;
      };
      EXPECT_LE(peak("budget=1:peak"), peak("default")) << file.model << " " << key;
    }
}

}  // namespace
}  // namespace plumbline::partition
