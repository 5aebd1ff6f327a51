// Mode bytes on the recorded models never saves more bytes of storages than PyTorch's own partitioners.
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "runtime/partition/budget/memory.h"
#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/parity/partition_mode.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/testing/golden_files.h"
#include "runtime/partition/testing/large_joint_graphs.h"
#include "runtime/partition/testing/pytorch_graphs.h"

namespace plumbline::partition {
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

/// The fewest bytes for a graph, with PyTorch's rules.
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

/// 16 x 32 to 64 and back, with an activation between; gradients of both weights and of the input.
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

int64_t saved_by(const char* mode, const JointGraph& graph) {
  return simulate_memory(partition(graph, load_policy("torch-2.11"), parse_partition_mode(mode))).saved_storage;
}

/// One block of 128 tokens, width 64, one head, a hidden layer four times as wide, in float32: 32768 bytes (a unit) for
/// all tokens. Default: both normalised inputs, q, k, v, softmax (2), attention, middle, up (4), gelu (4) make 17, and
/// mean and rstd of both norms 2048 bytes. Fewest: the results of products, qkv (3), scores (2), attention, projection,
/// up (4) make 11; the rest is recomputed.
TEST(MinBytesGolden, TransformerBlock) {
  const JointGraph graph =
      testing::transformer_joint_graph({.blocks = 1, .batch = 1, .length = 128, .width = 64, .heads = 1});
  EXPECT_EQ(saved_by("default", graph), 559104);
  EXPECT_EQ(saved_by("min-cut", graph), 559104);
  EXPECT_EQ(fewest_bytes(graph), 360448);
}

/// a c x + b y + a b c z with gradients of x, y and z, 2 x 4 floats each: the products of inputs need not be saved
/// (pytorch/pytorch issue 130039).
TEST(MinBytesGolden, Issue130039) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(32), y = build.primal(32), z = build.primal(32), a = build.primal(32),
                  b = build.primal(32), c = build.primal(32), tangent = build.tangent(32);
  const NodeIndex ac = build.call("mul", {a, c}, 32), of_x = build.call("mul", {ac, x}, 32),
                  of_y = build.call("mul", {b, y}, 32), sum = build.call("add", {of_x, of_y}, 32);
  const NodeIndex ab = build.call("mul", {a, b}, 32), abc = build.call("mul", {ab, c}, 32),
                  of_z = build.call("mul", {abc, z}, 32), out = build.call("add", {sum, of_z}, 32);
  build.begin_backward();
  const NodeIndex dz = build.call("mul", {tangent, abc}, 32), dy = build.call("mul", {tangent, b}, 32),
                  dx = build.call("mul", {tangent, ac}, 32);
  const JointGraph graph = build.graph({out}, {dx, dy, dz});
  EXPECT_EQ(saved_by("default", graph), 64) << "a c and a b c, beside the input b";
  EXPECT_EQ(saved_by("min-cut", graph), 0) << "three inputs";
  EXPECT_EQ(fewest_bytes(graph), 0);
}

/// 1024 values, expanded to 8 rows, 40 additions, cos: because of the ban on long chains, the large value is saved.
TEST(MinBytesGolden, FarApart) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(4096), w = build.primal(4), tangent = build.tangent(32768);
  const NodeIndex mm = build.call("mm", {x, w}, 4096);
  NodeIndex wide = build.view("expand", mm, 32768);
  for (int i = 0; i < 40; ++i) wide = build.call("add", {wide}, 32768);
  const NodeIndex cos = build.call("cos", {wide}, 32768);
  build.begin_backward();
  const NodeIndex gradient = build.call("mul", {tangent, build.call("sin", {wide}, 32768)}, 32768);
  const NodeIndex sum = build.call("sum", {gradient}, 4096), dx = build.call("mm", {sum, w}, 4096);
  const JointGraph graph = build.graph({cos}, {dx, kNoNode});
  EXPECT_EQ(saved_by("default", graph), 32768);
  EXPECT_EQ(saved_by("min-cut", graph), 32768);
  EXPECT_EQ(fewest_bytes(graph), 4096);
}

}  // namespace
}  // namespace plumbline::partition
