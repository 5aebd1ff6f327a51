// Compares whole partitions with those of PyTorch 2.3, under the policies seed and seed-nvfuser (testdata/README.md).
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/partition/parity/answer_names.h"
#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/testing/golden_files.h"
#include "runtime/partition/testing/names_of.h"

namespace plumbline::partition {
namespace {

using testing::names_of;
using Names = std::vector<std::string>;

TEST(SeedGolden, PartitionsAreThoseOfPyTorch23) {
  int runs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PLUMBLINE_PARTITION_TESTDATA "/seed")) {
    const JointGraphFile file = read_joint_graph_file(entry.path().string());
    for (const auto& [name, run] : file.runs) {
      SCOPED_TRACE(file.model + " " + name);
      const JointGraphFile::Variant& variant = file.variants.at(run.variant);
      PartitionOptions options;
      options.mode = run.mode == "default"      ? PartitionMode::Default
                     : run.mode == "aggressive" ? PartitionMode::Aggressive
                                                : PartitionMode::MinCut;
      const Partition partition =
          plumbline::partition::partition(file.graphs.at(variant.graph), load_policy(variant.torch), options);
      EXPECT_EQ(names_of(partition.graph, partition.saved), run.saved);
      EXPECT_EQ(names_of(partition.graph, partition.saved_symbols), run.saved_symbols);
      const AnswerNames names = answer_names(partition);
      EXPECT_EQ(names.forward.in, run.forward.in);
      EXPECT_EQ(names.forward.ops, run.forward.ops);
      EXPECT_EQ(names.forward.out, run.forward.out);
      EXPECT_EQ(names.backward.in, run.backward.in);
      EXPECT_EQ(names.backward.ops, run.backward.ops);
      EXPECT_EQ(names.backward.out, run.backward.out);
      ++runs;
    }
  }
  EXPECT_EQ(runs, 13 * 12);
}

}  // namespace
}  // namespace plumbline::partition
