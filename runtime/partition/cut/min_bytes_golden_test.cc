// Mode bytes on the recorded models: never more bytes of storages than PyTorch's own partitioners save.
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "runtime/partition/budget/memory.h"
#include "runtime/partition/testing/golden_files.h"
#include "runtime/partition/testing/pytorch_graphs.h"

namespace plumbline {
namespace {

PartitionOptions bytes_mode() {
  PartitionOptions options;
  options.mode = PartitionMode::Bytes;
  return options;
}

TEST(MinBytesGolden, NeverSavesMoreThanPyTorch) {
  int compared = 0, less = 0;
  for (const JointGraphFile& file : golden_files())
    for (const auto& [key, variant] : file.variants) {
      const JointGraph& graph = file.graphs.at(variant.graph);
      const Policy policy = load_policy("torch-" + key.substr(0, key.rfind('.')));
      const auto own = partition(graph, policy, bytes_mode());
      const int64_t bytes = simulate_memory(own).saved_storage;
      for (const char* mode : {"default", "min_cut"}) {
        const auto run = file.runs.find(key + "/" + mode + "/static=none");
        if (run == file.runs.end() || run->second.error) continue;
        ++compared;
        less += bytes < run->second.bytes_new_storage;
        EXPECT_LE(bytes, run->second.bytes_new_storage) << file.model << " " << run->first;
      }
    }
  EXPECT_GT(compared, 60);
  EXPECT_GT(less, 20);
}

/// Of a graph, with PyTorch's rules.
int64_t fewest_bytes(const JointGraph& graph) {
  return simulate_memory(partition(graph, load_policy("torch-2.11"), bytes_mode())).saved_storage;
}

using testing::JointGraphBuilder;

TEST(MinBytesGolden, SinOfSinPlusB) { EXPECT_EQ(fewest_bytes(testing::sin_sin_add()), 0); }

TEST(MinBytesGolden, LayerNorm) { EXPECT_EQ(fewest_bytes(testing::layer_norm()), 0); }

TEST(MinBytesGolden, Softmax) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(2048), tangent = build.tangent(2048);
  const NodeIndex softmax = build.call("_softmax", {x}, 2048), kept = build.view("detach", softmax);
  build.begin_backward();
  const NodeIndex gradient = build.call("_softmax_backward_data", {tangent, kept}, 2048);
  EXPECT_EQ(fewest_bytes(build.graph({softmax}, {gradient})), 0);
}

/// 16 x 32 to 64 and back, with an activation between; the gradients of both weights and of the input.
JointGraph mlp(const std::string& activation, const std::string& backward, bool reads_result) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(16 * 32 * 4), w = build.primal(32 * 64 * 4), v = build.primal(64 * 32 * 4);
  const NodeIndex tangent = build.tangent(16 * 32 * 4);
  const NodeIndex wide = build.call("mm", {x, build.view("t", w)}, 4096), act = build.call(activation, {wide}, 4096);
  const NodeIndex out = build.call("mm", {act, build.view("t", v)}, 2048);
  build.begin_backward();
  const NodeIndex of_v = build.call("mm", {build.view("t", act), tangent}, 8192);
  const NodeIndex of_act = build.call("mm", {tangent, v}, 4096);
  const NodeIndex of_wide = build.call(backward, {of_act, reads_result ? act : wide}, 4096);
  const NodeIndex of_w = build.call("mm", {build.view("t", x), of_wide}, 8192);
  const NodeIndex of_x = build.call("mm", {of_wide, w}, 2048);
  return build.graph({out}, {of_x, of_w, of_v});
}

TEST(MinBytesGolden, ReluMlp) { EXPECT_EQ(fewest_bytes(mlp("relu", "threshold_backward", true)), 4096); }
TEST(MinBytesGolden, GeluMlp) { EXPECT_EQ(fewest_bytes(mlp("gelu", "gelu_backward", false)), 4096); }

}  // namespace
}  // namespace plumbline
