#include "runtime/partition/joint/joint_flops.h"

#include <gtest/gtest.h>

#include "runtime/error.h"
#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/testing/arguments.h"
#include "runtime/partition/testing/golden_files.h"

namespace plumbline::partition {
namespace {

using Kind = JointArgument::Kind;

JointArgument none() { return {}; }
JointArgument flag(bool value) { return {.kind = Kind::Bool, .integer = value}; }
using testing::list;
using testing::number;
JointArgument numbers(std::initializer_list<int64_t> values) {
  JointArgument result = list({});
  for (int64_t value : values) result.items.push_back(number(value));
  return result;
}

/// A graph of inputs and one call.
class Call {
 public:
  JointArgument tensor(std::initializer_list<int64_t> shape) {
    graph_.nodes.push_back({.name = "primals_" + std::to_string(graph_.nodes.size()), .kind = JointKind::Primal});
    graph_.nodes.back().out = result(shape);
    return {.kind = Kind::Node, .node = static_cast<NodeIndex>(graph_.nodes.size() - 1)};
  }
  double flops(const std::string& op, std::vector<JointArgument> args, std::initializer_list<int64_t> shape) {
    graph_.nodes.push_back({.name = "call", .op = op, .overload = "default", .args = std::move(args)});
    graph_.nodes.back().out = result(shape);
    return counted_flops(graph_, static_cast<NodeIndex>(graph_.nodes.size() - 1));
  }

 private:
  static JointResult result(std::initializer_list<int64_t> shape) {
    JointResult tensor{.kind = JointResult::Kind::Tensor, .dtype = types::Dtype::Float32};
    for (int64_t size : shape) tensor.shape.push_back({size, ""});
    return tensor;
  }
  JointGraph graph_;
};

// What torch.utils.flop_counter.FlopCounterMode of PyTorch 2.15 gave for the same calls.
TEST(JointFlops, MatrixProducts) {
  Call c;
  EXPECT_EQ(c.flops("aten::mm", {c.tensor({3, 4}), c.tensor({4, 5})}, {3, 5}), 120);
  EXPECT_EQ(c.flops("aten::addmm", {c.tensor({5}), c.tensor({3, 4}), c.tensor({4, 5})}, {3, 5}), 120);
  EXPECT_EQ(c.flops("aten::bmm", {c.tensor({2, 3, 4}), c.tensor({2, 4, 5})}, {2, 3, 5}), 240);
  EXPECT_EQ(c.flops("aten::baddbmm", {c.tensor({2, 3, 5}), c.tensor({2, 3, 4}), c.tensor({2, 4, 5})}, {2, 3, 5}), 240);
}

TEST(JointFlops, Attention) {
  const auto tensors = [](Call& c, bool backward, int64_t heads_of_keys) {
    std::vector<JointArgument> args;
    if (backward) args.push_back(c.tensor({2, 4, 6, 8}));
    args.push_back(c.tensor({2, 4, 6, 8}));
    for (int i = 0; i < 2; ++i) args.push_back(c.tensor({2, heads_of_keys, 10, 8}));
    return args;
  };
  for (const char* kind : {"efficient_attention", "flash_attention", "flash_attention_for_cpu", "cudnn_attention"}) {
    const std::string op = std::string("aten::_scaled_dot_product_") + kind;
    for (int64_t heads_of_keys : {4, 2}) {
      Call c;
      EXPECT_EQ(c.flops(op, tensors(c, false, heads_of_keys), {2, 4, 6, 8}), 15360) << op;
      EXPECT_EQ(c.flops(op + "_backward", tensors(c, true, heads_of_keys), {2, 4, 6, 8}), 38400) << op;
    }
  }
}

std::vector<JointArgument> convolution(Call& c, std::initializer_list<int64_t> x, std::initializer_list<int64_t> w,
                                       bool transposed, int64_t groups) {
  return {c.tensor(x),     c.tensor(w),      none(),          numbers({1, 1}), numbers({0, 0}),
          numbers({1, 1}), flag(transposed), numbers({0, 0}), number(groups)};
}

std::vector<JointArgument> convolution_backward(Call& c, std::initializer_list<int64_t> dy,
                                                std::initializer_list<int64_t> x, std::initializer_list<int64_t> w,
                                                bool transposed, int64_t groups, bool of_input, bool of_weight) {
  return {c.tensor(dy),
          c.tensor(x),
          c.tensor(w),
          none(),
          numbers({1, 1}),
          numbers({0, 0}),
          numbers({1, 1}),
          flag(transposed),
          numbers({0, 0}),
          number(groups),
          list({flag(of_input), flag(of_weight), flag(false)})};
}

TEST(JointFlops, Convolutions) {
  Call c;
  // 2 x 4 channels x 7 x 9, 6 filters of 3 x 2: 5 x 8 positions.
  EXPECT_EQ(c.flops("aten::convolution", convolution(c, {2, 4, 7, 9}, {6, 4, 3, 2}, false, 1), {2, 6, 5, 8}), 23040);
  EXPECT_EQ(c.flops("aten::convolution", convolution(c, {2, 4, 7, 9}, {6, 2, 3, 2}, false, 2), {2, 6, 5, 8}), 11520);
  EXPECT_EQ(c.flops("aten::convolution", convolution(c, {2, 4, 7, 9}, {4, 6, 3, 2}, true, 1), {2, 6, 9, 10}), 36288);
}

TEST(JointFlops, GradientsOfConvolutions) {
  Call c;
  const auto backward = [&](std::initializer_list<int64_t> dy, std::initializer_list<int64_t> w, bool transposed,
                            int64_t groups, bool of_input, bool of_weight) {
    return c.flops("aten::convolution_backward",
                   convolution_backward(c, dy, {2, 4, 7, 9}, w, transposed, groups, of_input, of_weight), {});
  };
  EXPECT_EQ(backward({2, 6, 5, 8}, {6, 4, 3, 2}, false, 1, true, false), 23040);
  EXPECT_EQ(backward({2, 6, 5, 8}, {6, 4, 3, 2}, false, 1, true, true), 46080);
  // Grouped: that of the input takes half, that of the weight is counted as without groups.
  EXPECT_EQ(backward({2, 6, 5, 8}, {6, 2, 3, 2}, false, 2, true, false), 11520);
  EXPECT_EQ(backward({2, 6, 5, 8}, {6, 2, 3, 2}, false, 2, false, true), 23040);
  EXPECT_EQ(backward({2, 6, 9, 10}, {4, 6, 3, 2}, true, 1, true, true), 72576);
}

TEST(JointFlops, EverythingElseIsOne) {
  Call c;
  EXPECT_EQ(c.flops("aten::mv", {c.tensor({3, 4}), c.tensor({4})}, {3}), 1);
  EXPECT_EQ(c.flops("aten::add", {c.tensor({3, 4}), c.tensor({3, 4})}, {3, 4}), 1);
  EXPECT_EQ(c.flops("aten::mm", {c.tensor({0, 4}), c.tensor({4, 5})}, {0, 5}), 1);
}

TEST(JointFlops, ArgumentsThatAreMissingAreRefused) {
  Call c;
  try {
    c.flops("aten::convolution_backward", {c.tensor({3})}, {3});
    FAIL() << "not refused";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "partition: node call does not have the arguments of aten::convolution_backward");
  }
}

// Every node of every graph that PyTorch traced, with the number that PyTorch put to it. Only one operator is counted
// by 2.15 and not by 2.11.
TEST(JointFlops, GraphsOfPyTorch) {
  int counted = 0;
  for (const JointGraphFile& file : golden_files()) {
    for (const auto& [key, variant] : file.variants) {
      const JointGraph& graph = file.graphs.at(variant.graph);
      JointGraph again = graph;
      for (JointNode& node : again.nodes) node.flops = -1;
      count_flops(again);
      for (size_t i = 0; i < graph.nodes.size(); ++i) {
        const JointNode& node = graph.nodes[i];
        counted += node.flops > 1;
        if (variant.torch == "2.11.0" && node.op.starts_with("aten::_scaled_dot_product_flash_attention_for_cpu"))
          EXPECT_TRUE(node.flops == 1 || node.op.ends_with("_backward"))
              << file.model << " " << key << " " << node.name;
        else
          EXPECT_EQ(again.nodes[i].flops, node.flops) << file.model << " " << key << " " << node.name;
      }
    }
  }
  EXPECT_GT(counted, 100);
}

}  // namespace
}  // namespace plumbline::partition
