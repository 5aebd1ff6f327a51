// Joint graphs that PyTorch itself traced (testdata/README.md), partitioned in every mode and carried out on random
// inputs: forward and backward together must give what the undivided graph gives, bit by bit. Independent of our own
// tracing.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "runtime/graph/run/random_turn.h"
#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/parity/partition_mode.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/run/lower.h"
#include "runtime/partition/testdata_path.h"
#include "runtime/partition/testing/joint_run_testing.h"
#include "runtime/testing/in_full.h"
#include "runtime/types/aten.h"

namespace plumbline::partition {
namespace {

using Tensors = std::vector<at::Tensor>;

std::vector<int64_t> values_of(const std::vector<Extent>& extents) {
  std::vector<int64_t> values;
  for (const Extent& extent : extents) values.push_back(extent.value);
  return values;
}

/// Between 0.5 and 1.5 where it is floating point: valid as a variance, too. Whole numbers are 0 or 1: valid indices.
at::Tensor input_like(const JointResult& out) {
  if (out.kind != JointResult::Kind::Tensor) return {};
  const at::ScalarType dtype = types::to_aten(out.dtype);
  at::Tensor tensor = at::empty_strided(values_of(out.shape), values_of(out.strides), dtype);
  if (at::isFloatingType(dtype))
    tensor.copy_(at::rand(tensor.sizes()).add(0.5).to(dtype));
  else
    tensor.copy_(at::randint(2, tensor.sizes()));
  return tensor;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor x = a.contiguous(), y = b.contiguous();
  return std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

/// The tensors of `values` (by node) that a part takes; numbers are left out.
Tensors gather(const std::map<NodeIndex, at::Tensor>& values, const std::vector<NodeIndex>& nodes) {
  Tensors tensors;
  for (const NodeIndex node : nodes) tensors.push_back(values.contains(node) ? values.at(node) : at::Tensor());
  return tensors;
}

/// What the graph's outputs are when nothing is divided.
Tensors undivided(const JointGraph& graph, const Tensors& inputs) {
  at::manual_seed(5);
  if (graph.symbols.empty()) return JointRun(graph, {})(inputs);
  Subgraph all;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    (graph.nodes[i].is_input() ? all.inputs : all.ops).push_back(static_cast<NodeIndex>(i));
  all.outputs = graph.outputs;
  Tensors outputs, states;
  run_lowered(lower(graph, all, {}, {}), inputs, outputs, {graph::RandomStates::Mode::Record, &states});
  return outputs;
}

Tensors divided(const Partition& partition, const Tensors& inputs) {
  at::manual_seed(5);
  std::map<NodeIndex, at::Tensor> values;
  size_t next = 0;
  for (size_t i = 0; i < partition.graph.nodes.size(); ++i)
    if (partition.graph.nodes[i].is_input()) values[static_cast<NodeIndex>(i)] = inputs[next++];
  Tensors made, gradients, states;
  run_lowered(lower(partition.graph, partition.forward, {}, partition.replayed),
              gather(values, partition.forward.inputs), made, {graph::RandomStates::Mode::Record, &states});
  for (size_t i = 0; i < made.size(); ++i)
    if (partition.forward.outputs[i] != kNoNode) values[partition.forward.outputs[i]] = made[i];
  const at::Tensor before = graph::random_state();
  run_lowered(lower(partition.graph, partition.backward, {}, partition.replayed),
              gather(values, partition.backward.inputs), gradients, {graph::RandomStates::Mode::Replay, &states});
  EXPECT_TRUE(at::equal(before, graph::random_state())) << "the backward drew";
  made.resize(partition.graph.num_forward_outputs);
  made.insert(made.end(), gradients.begin(), gradients.end());
  return made;
}

class RunRecorded : public ::testing::TestWithParam<std::string> {};

TEST_P(RunRecorded, TheHalvesMakeTheWhole) {
  const JointGraphFile file =
      read_joint_graph_file(std::string(PLUMBLINE_PARTITION_TESTDATA) + "/" + GetParam() + ".json.gz");
  std::vector<std::string> modes = {"min-cut", "bytes", "budget=0.1"};
  if (testing::in_full()) modes = {"default", "min-cut", "aggressive", "bytes", "budget=0.5", "budget=0.1", "budget=0"};
  int graphs = 0;
  for (const auto& [name, variant] : file.variants) {
    if (variant.decompositions != "aten") continue;  // the others need Python's operators
    const JointGraph& graph = file.graphs.at(variant.graph);
    at::manual_seed(3);
    Tensors inputs;
    for (const JointNode& node : graph.nodes)
      if (node.is_input()) inputs.push_back(input_like(node.out));
    const Tensors whole = undivided(graph, inputs);
    for (const char* policy : {"seed", "torch-2.15"})
      for (const std::string& mode : modes) {
        SCOPED_TRACE(name + ", " + mode + ", " + policy);
        PartitionOptions options = parse_partition_mode(mode);
        options.static_inputs = variant.params;
        const Tensors ours = divided(partition(graph, load_policy(policy), options), inputs);
        ASSERT_EQ(ours.size(), whole.size());
        for (size_t i = 0; i < ours.size(); ++i) {
          ASSERT_EQ(ours[i].defined(), whole[i].defined()) << i;
          if (ours[i].defined()) {
            EXPECT_TRUE(same_bits(ours[i], whole[i])) << "output " << i;
          }
        }
        ++graphs;
      }
  }
  EXPECT_GT(graphs, 0);
}

std::vector<std::string> recorded_models() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(PLUMBLINE_PARTITION_TESTDATA))
    if (const std::string name = entry.path().filename(); name.ends_with(".json.gz"))
      names.push_back(name.substr(0, name.find('.')));
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, RunRecorded, ::testing::ValuesIn(recorded_models()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace plumbline::partition
