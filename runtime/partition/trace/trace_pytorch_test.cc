// Joint graphs traced here against those that AOTAutograd traced of the same models in Python (testdata/README.md): the
// same operators on the same shapes in the same order.
#include <algorithm>

#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/testdata_path.h"
#include "runtime/partition/testing/trace_testing.h"

namespace plumbline::partition {
namespace {

using M = TracedModule;

/// "mm float32[32,256,] forward, 1048576 flops", one for each call. Detach is left out, which Python's tracing makes of
/// saved results and C++ does not; a view is a view whether safe or not, and a number an argument whether it comes as
/// Tensor or Scalar.
std::vector<std::string> outline(const JointGraph& graph) {
  std::vector<std::string> lines;
  for (const JointNode& node : graph.nodes) {
    if (node.kind != JointKind::Call || node.op == "aten::detach") continue;
    std::string line = node.op == "aten::_unsafe_view" ? "aten::view" : node.op;
    const std::vector<JointResult> results =
        node.out.kind == JointResult::Kind::Tuple ? node.out.items : std::vector{node.out};
    for (const JointResult& result : results) {
      line += " " + std::string(types::name_of(result.dtype)) + "[";
      for (const Extent& extent : result.shape) line += std::to_string(extent.value) + ",";
      line += "]";
    }
    line += node.mark == JointMark::IsBackward ? " backward, " : " forward, ";
    lines.push_back(line + std::to_string(static_cast<int64_t>(node.flops)) + " flops");
  }
  return lines;
}

JointGraph recorded(const std::string& model) {
  const JointGraphFile file =
      read_joint_graph_file(std::string(PLUMBLINE_PARTITION_TESTDATA) + "/" + model + ".json.gz");
  return file.graphs.at(file.variants.at("2.15.0/aten").graph);
}

void expect_as_recorded(const std::string& name, const std::function<void(M&)>& build, const Tensors& inputs,
                        bool native_dropout = false) {
  SCOPED_TRACE(name);
  const auto module = module_of(build);
  const graph::Graph graph = capture_of(*module, module->body, inputs);
  const JointTrace trace = trace_joint(native_dropout ? with_native_dropout(graph) : graph, inputs);
  EXPECT_EQ(outline(trace.graph), outline(recorded(name)));
}

struct Linear {
  Linear(M& m, const std::string& name, int64_t in, int64_t out)
      : weight(m.parameter(name + "_weight", {out, in})), bias(m.parameter(name + "_bias", {out})) {}
  at::Tensor operator()(const at::Tensor& x) const { return at::linear(x, weight, bias); }
  at::Tensor weight, bias;
};

TEST(TraceAgainstPyTorch, Mlp) {
  const auto build = [](bool dropout) {
    return [dropout](M& m) {
      const Linear a(m, "a", 64, 256), b(m, "b", 256, 256), c(m, "c", 256, 64);
      const auto drop = [dropout](const at::Tensor& x) { return dropout ? at::dropout(x, 0.3, true) : x; };
      m.body = [=](const Tensors& in) { return Tensors{c(drop(at::gelu(b(drop(at::gelu(a(in[0])))))))}; };
    };
  };
  expect_as_recorded("mlp_gelu", build(false), {at::randn({32, 64})});
  expect_as_recorded("dropout_mlp", build(true), {at::randn({32, 64})}, /*native_dropout=*/true);
}

TEST(TraceAgainstPyTorch, LayerNorm) {
  expect_as_recorded(
      "layer_norm_getitem",
      [](M& m) { m.body = [](const Tensors& in) { return Tensors{at::layer_norm(in[0], {10}, in[1], in[2])}; }; },
      {at::randn({3, 10}).requires_grad_(), at::randn({10}).requires_grad_(), at::randn({10}).requires_grad_()});
}

TEST(TraceAgainstPyTorch, ConvolutionsWithBatchNorm) {
  expect_as_recorded("conv_bn_relu",
                     [](M& m) {
                       struct Layer {
                         Layer(M& m, const std::string& name, int64_t in)
                             : kernel(m.parameter(name + "_kernel", {16, in, 3, 3})),
                               weight(m.parameter(name + "_weight", {16})),
                               bias(m.parameter(name + "_bias", {16})),
                               mean(m.register_buffer(name + "_mean", at::zeros({16}))),
                               variance(m.register_buffer(name + "_variance", at::ones({16}))),
                               batches(m.register_buffer(name + "_batches", at::zeros({}, at::kLong))) {}
                         at::Tensor operator()(const at::Tensor& x) const {
                           const at::Tensor y = at::conv2d(x, kernel, {}, 1, 1);
                           at::Tensor(batches).add_(1);
                           return at::relu(at::batch_norm(y, weight, bias, mean, variance, true, 0.1, 1e-5, false));
                         }
                         at::Tensor kernel, weight, bias, mean, variance, batches;
                       };
                       const Layer a(m, "a", 3), b(m, "b", 16);
                       const Linear head(m, "head", 16, 10);
                       m.body = [=](const Tensors& in) { return Tensors{head(b(a(in[0])).mean({2, 3}))}; };
                     },
                     {at::randn({2, 3, 16, 16})});
}

TEST(TraceAgainstPyTorch, CrossEntropy) {
  expect_as_recorded("cross_entropy",
                     [](M& m) {
                       const Linear a(m, "a", 20, 40), b(m, "b", 40, 10);
                       m.body = [=](const Tensors& in) {
                         return Tensors{at::cross_entropy_loss(b(at::tanh(a(in[0]))), in[1])};
                       };
                     },
                     {at::randn({12, 20}), at::randint(10, {12}, at::kLong)});
}

TEST(TraceAgainstPyTorch, WritesInPlace) {
  expect_as_recorded("in_place",
                     [](M& m) {
                       const Linear fc(m, "fc", 16, 16);
                       m.body = [=](const Tensors& in) {
                         at::Tensor y = fc(in[0]).mul_(2);
                         y.select(0, 0).add_(1);
                         y.narrow(1, 2, 4).copy_(in[0].narrow(1, 0, 4));
                         return Tensors{y.relu_().sum(1)};
                       };
                     },
                     {at::randn({6, 16})});
}

TEST(TraceAgainstPyTorch, TiedEmbedding) {
  expect_as_recorded("tied_embedding",
                     [](M& m) {
                       const at::Tensor table = m.parameter("table", {30, 16});
                       const Linear fc(m, "fc", 16, 16);
                       m.body = [=](const Tensors& in) {
                         const at::Tensor x = at::silu(fc(at::embedding(table, in[0])));
                         return Tensors{at::matmul(x, table.t())};
                       };
                     },
                     {at::randint(30, {4, 7}, at::kLong)});
}

TEST(TraceAgainstPyTorch, Attention) {
  expect_as_recorded("attn_sdpa",
                     [](M& m) {
                       const at::Tensor g1 = m.parameter("g1", {32}), b1 = m.parameter("b1", {32}),
                                        g2 = m.parameter("g2", {32}), b2 = m.parameter("b2", {32});
                       const Linear qkv(m, "qkv", 32, 96), out(m, "out", 32, 32), up(m, "up", 32, 128),
                           down(m, "down", 128, 32);
                       m.body = [=](const Tensors& in) {
                         Tensors heads = qkv(at::layer_norm(in[0], {32}, g1, b1)).chunk(3, -1);
                         for (at::Tensor& part : heads) part = part.view({2, 8, 4, 8}).transpose(1, 2);
                         const at::Tensor y = at::scaled_dot_product_attention(heads[0], heads[1], heads[2]);
                         const at::Tensor x = in[0] + out(y.transpose(1, 2).reshape({2, 8, 32}));
                         return Tensors{x + down(at::gelu(up(at::layer_norm(x, {32}, g2, b2))))};
                       };
                     },
                     {at::randn({2, 8, 32})});
}

TEST(TraceAgainstPyTorch, ManyOutputs) {
  expect_as_recorded("many_outputs",
                     [](M& m) {
                       const Linear fc(m, "fc", 12, 12);
                       m.body = [=](const Tensors& in) {
                         const Tensors parts = fc(in[0]).split(4, 1);
                         return Tensors{parts[0] * parts[1], at::cat({parts[1], parts[2]}, 1).exp(), in[1] + 1};
                       };
                     },
                     {at::randn({6, 12}).requires_grad_(), at::randn({6, 12})});
}

}  // namespace
}  // namespace plumbline::partition
