#include "runtime/partition/parity/statistics.h"

#include <gtest/gtest.h>

#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/testing/golden_files.h"
#include "runtime/partition/testing/recorded_partition.h"

namespace plumbline::partition {
namespace {

Policy cheap(OpSet ops) {
  Policy policy;
  policy.recomputable = std::move(ops);
  return policy;
}

// PyTorch recorded these numbers: _size_of over the saved set, and the names in both modules.
TEST(Statistics, CountWhatPyTorchCounts) {
  for (const JointGraphFile& file : golden_files())
    for (const auto& [key, run] : file.runs) {
      if (adds_nodes(run)) continue;
      const PartitionStatistics found = statistics_of(recorded_partition(file, run), Policy());
      EXPECT_EQ(found.saved_bytes, run.bytes + static_cast<int64_t>(run.saved_symbols.size())) << file.model << key;
      EXPECT_EQ(found.recomputed, static_cast<int>(run.recomputed.size())) << file.model << key;
      EXPECT_EQ(found.forward, static_cast<int>(run.forward.ops.size())) << file.model << key;
      EXPECT_EQ(found.backward, static_cast<int>(run.backward.ops.size())) << file.model << key;
    }
}

TEST(Statistics, AreWrittenAsPyTorchWritesThem) {
  const auto tensor = [](int64_t bytes) {
    return JointResult{.kind = JointResult::Kind::Tensor, .dtype = types::Dtype::Float32, .bytes = bytes};
  };
  Partition partition;
  const auto add = [&](const char* name, const char* op, int64_t bytes) {
    partition.graph.nodes.push_back({.name = name, .op = op, .out = tensor(bytes)});
    return static_cast<NodeIndex>(partition.graph.nodes.size()) - 1;
  };
  const NodeIndex mm = add("mm", "aten::mm", 30'000'000), sin = add("sin", "aten::sin", 8),
                  cos = add("cos", "aten::cos", 8), cos_1 = add("cos_1", "aten::cos", 8),
                  mul = add("mul", "operator::mul", 0), c = add("c", "", 4), mm_1 = add("mm_1", "aten::mm", 8),
                  div = add("div", "prims::div", 8);
  partition.graph.nodes[c].kind = JointKind::GetAttr;
  partition.graph.nodes[mul].out = {.kind = JointResult::Kind::Scalar, .dtype = types::Dtype::Int64};
  partition.saved = {mm, cos};
  partition.saved_symbols = {mul};
  partition.forward.ops = {mm, c, sin, cos, cos_1, mul};
  partition.backward.ops = {c, sin, cos, cos_1, mul, mm_1, div};
  EXPECT_EQ(to_text(statistics_of(partition, cheap({"aten::sin", "aten::cos"}))),
            "Ops banned from re-materialization: {aten.mm, prims.div}\n"
            "Theoretical Activations Stored: 0.03 GB\n"
            "Theoretical Per Activation Storage Sizes: [(1, 'mul'), (8, 'cos'), (30000000, 'mm')]\n"
            "# remat/fw/bw: 4/5/6\n"
            "Count of Ops Rematerialized: [('aten.cos', 2), ('aten.sin', 1)]\n");
}

}  // namespace
}  // namespace plumbline::partition
