#include "runtime/capture/annotate.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "runtime/graph/testing/parse.h"

namespace plumbline::capture {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Every fact about a value in the text is wrong except the structure: f64[7], no gradient.
graph::Graph graph_of(const std::string& text, const Tensors& attributes) {
  graph::Graph graph = graph::parse_graph(text);
  for (size_t i = 0; i < attributes.size(); ++i) graph.attributes.at(i).tensor = attributes[i];
  return graph;
}

/// "f32[2,3]*" of each value; "int" and the like for numbers.
std::vector<std::string> facts(const graph::Graph& graph) {
  std::vector<std::string> out;
  for (const graph::Value& value : graph.values) {
    const char* numbers[] = {"", "int ", "float ", "bool "};
    out.push_back(numbers[static_cast<int>(value.kind)] + graph::describe(value.dtype, value.sizes) +
                  (value.requires_grad ? "*" : ""));
  }
  return out;
}

std::vector<int32_t> storages(const graph::Graph& graph) {
  std::vector<int32_t> out;
  for (const graph::Value& value : graph.values) out.push_back(value.storage);
  return out;
}

TEST(Annotate, FillsInWhatARunShows) {
  graph::Graph graph = graph_of(R"(input %0: f64[7] = "x"
parameter %1: f64[7] = "w"
%2: f64[7] = aten::linear(%0, %1, None)
%3: f64[7] = aten::t(%2)
%4: f64[7] = aten::gt.Scalar(%3, 0)
%5: f64[7] = aten::sum(%4, None)
%6: f64[7] = aten::mm(%0, %1) no_grad
[%7: f64[7], %8: f64[7]] = aten::split.Tensor(%2, 2, 0)
%9: f64[7] = aten::t(%1) no_grad
return %7
)",
                                {at::randn({3, 3}).requires_grad_(true)});
  annotate(graph, {at::randn({4, 3})});
  EXPECT_EQ(facts(graph), (std::vector<std::string>{"f32[4,3]", "f32[3,3]*", "f32[4,3]*", "f32[3,4]*", "bool[3,4]",
                                                    "i64[]", "f32[4,3]", "f32[2,3]*", "f32[2,3]*", "f32[3,3]"}));
  const std::vector<int32_t> s = storages(graph);
  EXPECT_EQ(s[3], s[2]);
  EXPECT_EQ(s[7], s[2]);
  EXPECT_EQ(s[8], s[2]);
  EXPECT_EQ(s[9], s[1]);
  for (size_t v : {0, 1, 4, 5, 6}) EXPECT_EQ(std::count(s.begin(), s.end(), s[v]), v == 1 ? 2 : 1) << "%" << v;
}

TEST(Annotate, NumbersHaveAKindAndNoSizes) {
  graph::Graph graph = graph_of(R"(input %0: f64[7] = "x"
%1: int = aten::sym_size.int(%0, 1)
%2: f64[7] = aten::sum(%0, None)
%3: float = aten::item(%2)
%4: bool = aten::is_nonzero(%2)
return %0
)",
                                {});
  annotate(graph, {at::ones({4, 3})});
  EXPECT_EQ(facts(graph), (std::vector<std::string>{"f32[4,3]", "int i64[]", "f32[]", "float f64[]", "bool bool[]"}));
  EXPECT_EQ(graph.values[1].storage, -1);
}

// z = zeros; v = z[0]; v += w: from then on z requires a gradient, and so does any earlier view of it.
TEST(Annotate, WritesThroughAViewGiveItsBaseAGradient) {
  graph::Graph graph = graph_of(R"(input %0: f64[7] = "x"
parameter %1: f64[7] = "w"
%2: f64[7] = aten::zeros_like(%0, None, None, None, None, None)
%3: f64[7] = aten::select.int(%2, 0, 1)
%4: f64[7] = aten::select.int(%2, 0, 0)
%5: f64[7] = aten::add_.Tensor(%4, %1, 1)
%6: f64[7] = aten::mul.Tensor(%2, 2)
return %6, %3
)",
                                {at::randn({3}).requires_grad_(true)});
  annotate(graph, {at::ones({4, 3})});
  EXPECT_EQ(facts(graph), (std::vector<std::string>{"f32[4,3]", "f32[3]*", "f32[4,3]*", "f32[3]*", "f32[3]", "f32[3]*",
                                                    "f32[4,3]*"}));
  const std::vector<int32_t> s = storages(graph);
  for (size_t v : {3, 4, 5}) EXPECT_EQ(s[v], s[2]);
}

// Reused memory is not shared memory.
TEST(Annotate, MemoryUsedAgainIsNotShared) {
  std::string text = "input %0: f64[7] = \"x\"\n";
  for (int i = 1; i <= 50; ++i)
    text += "%" + std::to_string(i) + ": f64[7] = aten::relu(%" + std::to_string(i - 1) + ")\n";
  graph::Graph graph = graph::parse_graph(text + "return %50\n");
  annotate(graph, {at::ones({4, 3})});
  std::vector<int32_t> s = storages(graph);
  std::sort(s.begin(), s.end());
  EXPECT_EQ(std::adjacent_find(s.begin(), s.end()), s.end());
}

TEST(Annotate, EverythingIsAfterwardsAsBefore) {
  const at::Tensor weight = at::randn({3}).requires_grad_(true), mean = at::randn({3}), var = at::rand({3}),
                   total = at::randn({3}), table = at::ones({2, 3}), x = at::randn({4, 3});
  const Tensors all = {weight, mean, var, total, table, x};
  Tensors before;
  for (const at::Tensor& t : all) before.push_back(t.detach().clone());
  graph::Graph graph = graph_of(R"(input %0: f64[7] = "x"
parameter %1: f64[7] = "weight"
buffer %2: f64[7] = "mean"
buffer %3: f64[7] = "var"
buffer %4: f64[7] = "total"
constant %5: f64[7] = "table"
%6: f64[7] = aten::batch_norm(%0, %1, None, %2, %3, True, 0.1, 1e-05, False)
%7: f64[7] = aten::add_.Tensor(%1, 1, 1) no_grad
%8: f64[7] = aten::sum.dim_IntList(%6, [0], False, None)
%9: f64[7] = aten::add_.Tensor(%4, %8, 1)
%10: f64[7] = aten::fill_.Scalar(%5, 7)
%11: f64[7] = aten::select.int(%0, 0, 0)
%12: f64[7] = aten::mul_.Tensor(%11, 3)
return %6
)",
                                {weight, mean, var, total, table});
  annotate(graph, {x});
  for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(at::equal(all[i], before[i])) << i;
  EXPECT_FALSE(total.requires_grad());
  EXPECT_TRUE(weight.is_leaf() && weight.requires_grad());
  EXPECT_TRUE(graph.values[9].requires_grad);
}

TEST(Annotate, TheGeneratorIsAsBefore) {
  graph::Graph graph = graph_of(
      "input %0: f64[7] = \"x\"\n%1: f64[7] = aten::rand_like(%0, None, None, None, None, None)\nreturn %1\n", {});
  const at::Tensor state = at::detail::getDefaultCPUGenerator().get_state();
  annotate(graph, {at::ones({4})});
  EXPECT_TRUE(at::equal(state, at::detail::getDefaultCPUGenerator().get_state()));
}

TEST(Annotate, AsManyInputsAsTheGraphTakes) {
  graph::Graph graph = graph_of("input %0: f64[7] = \"x\"\nreturn %0\n", {});
  EXPECT_THROW(annotate(graph, {}), InputError);
}

}  // namespace
}  // namespace plumbline::capture
