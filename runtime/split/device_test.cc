#include "runtime/split/device.h"

#include <gtest/gtest.h>

#include "runtime/graph/interpreter.h"
#include "runtime/testing/small_pipes.h"

namespace plumbline::split {
namespace {

const c10::Device kMeta = c10::kMeta, kCpu = c10::kCPU;

const std::string kFactories = R"(input %0: f32[2] = "x"
input %1: bool[] = "p"
%2: f32[2] = aten::ones([2], 6, None, device "cpu", True)
%3: f32[2] = aten::zeros([2], 6, None, None, None)
%4: f32[2] = aten::to.device(%2, device "cpu", 6, False, False, None)
[%5: f32[2]] = plumbline::cond(%1, [%4])
then {
  input %0: f32[2] = "a"
  %1: f32[2] = aten::full([2], 1, 6, None, device "cpu", False)
  return %1
}
else {
  input %0: f32[2] = "a"
  return %0
}
return %3, %5
)";

TEST(Device, CallsThatNameADeviceNameTheNewOne) {
  graph::Graph graph = graph::parse_graph(kFactories);
  const graph::Graph before = graph;
  move_to_device(graph, kMeta);
  std::string expected = kFactories;
  for (size_t at; (at = expected.find("device \"cpu\", True")) != std::string::npos;)
    expected.replace(at, 18, "device \"meta\", False");
  for (size_t at; (at = expected.find("device \"cpu\"")) != std::string::npos;)
    expected.replace(at, 12, "device \"meta\"");
  EXPECT_EQ(to_text(graph), expected);
  EXPECT_EQ(to_text(before), kFactories) << "branches are shared by copies of a graph";
  move_to_device(graph, c10::Device("cuda:1"));
  EXPECT_NE(to_text(graph).find("aten::full([2], 1, 6, None, device \"cuda:1\", False)"), std::string::npos);
}

TEST(Device, PinnedMemoryStaysPinnedOnTheCpu) {
  graph::Graph graph = graph::parse_graph(kFactories);
  move_to_device(graph, kCpu);
  EXPECT_EQ(to_text(graph), kFactories);
}

TEST(Device, DevicesInListsAreRewritten) {
  graph::Graph graph = graph::parse_graph(kFactories);
  const c10::List<c10::Device> devices({c10::Device("cpu"), c10::Device("cuda:0")});
  const c10::List<std::optional<c10::Device>> optionals({c10::Device("cpu"), std::nullopt});
  graph.nodes[0].arguments[3].constant = devices;
  graph.nodes[1].arguments[3].constant = optionals;
  move_to_device(graph, kMeta);
  EXPECT_NE(to_text(graph).find("[device \"meta\", device \"meta\"], False"), std::string::npos) << to_text(graph);
  EXPECT_NE(to_text(graph).find("[device \"meta\", None], None"), std::string::npos) << to_text(graph);
  EXPECT_EQ(c10::Device(devices[0]), kCpu) << "a list may be shared with other graphs";
}

TEST(Device, ShapesAreComputedOnMeta) {
  graph::Graph graph = graph::parse_graph(kFactories);
  graph.nodes.pop_back();
  graph.outputs = {3, 4};
  move_to_device(graph, kMeta);
  std::vector<at::Tensor> outputs;
  const at::Tensor p = at::empty({}, at::TensorOptions(kMeta).dtype(at::kBool));
  graph::Interpreter(graph).run(std::vector<at::Tensor>{at::empty({2}, at::TensorOptions(kMeta)), p}, outputs);
  EXPECT_TRUE(outputs[1].is_meta());
  EXPECT_FALSE(outputs[0].is_meta()) << "a factory that names no device uses the default one";
}

TEST(Device, TensorsMoveAndStayLeavesAndShared) {
  graph::Graph graph = testing::three_stage_graph();
  const at::Tensor weight = graph.attributes[0].tensor, base = at::arange(8, at::kFloat);
  graph.attributes[1].tensor = weight;
  graph.attributes[2].tensor = base.slice(0, 2, 5);
  graph.attributes[3].tensor = base.select(0, 3);
  const graph::Graph before = graph;
  move_to_device(graph, kMeta);
  auto tensor = [&](int i) { return graph.attributes[i].tensor; };
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(tensor(i).is_meta()) << i;
    EXPECT_TRUE(tensor(i).is_leaf()) << i;
    EXPECT_EQ(tensor(i).sizes(), before.attributes[i].tensor.sizes()) << i;
    EXPECT_EQ(tensor(i).requires_grad(), i < 2) << i;
  }
  EXPECT_TRUE(tensor(0).is_same(tensor(1)));
  EXPECT_TRUE(tensor(2).is_alias_of(tensor(3)));
  EXPECT_EQ(tensor(3).storage_offset(), 3);
  EXPECT_TRUE(before.attributes[0].tensor.is_cpu()) << "the tensors of other graphs stay where they are";

  move_to_device(graph, kCpu);
  EXPECT_TRUE(tensor(0).is_meta()) << "there is nothing to move";
  move_to_device(graph, kCpu, MetaTensors::Zeros);
  EXPECT_TRUE(tensor(0).is_same(tensor(1)));
  EXPECT_TRUE(tensor(0).requires_grad() && tensor(0).is_leaf());
  EXPECT_TRUE(at::equal(tensor(0), at::zeros({3, 3})));
  EXPECT_TRUE(at::equal(tensor(2), at::zeros({3})));
  tensor(2).fill_(7);
  EXPECT_EQ(tensor(3).item<float>(), 7.0f);

  const at::Tensor there = tensor(0);
  move_to_device(graph, kCpu);
  EXPECT_TRUE(tensor(0).is_same(there)) << "what is there already is not copied";
}

TEST(Device, AutocastForTheCpuFollowsToADeviceThatComputes) {
  const std::string text = "autocast 0 = cpu bf16\nautocast 1 = xpu f16 in 0\nreturn\n";
  graph::Graph graph = graph::parse_graph(text);
  move_to_device(graph, kMeta);
  EXPECT_EQ(to_text(graph), text);
  move_to_device(graph, c10::Device("cuda:0"));
  EXPECT_EQ(to_text(graph), "autocast 0 = cuda bf16\nautocast 1 = xpu f16 in 0\nreturn\n");
}

}  // namespace
}  // namespace plumbline::split
