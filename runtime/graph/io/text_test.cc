#include "runtime/graph/io/text.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/error.h"
#include "runtime/graph/io/json.h"
#include "runtime/graph/io/operator_named.h"
#include "runtime/graph/run/program.h"
#include "runtime/graph/testing/parse.h"
#include "runtime/testing/random_graph.h"

namespace plumbline::graph {
namespace {

// Every construct of the text form at least once.
const std::string kEverything = R"(input %0: f32[4,8] = "x"
input %1: i64[2] = "the \"index\" \\ of it"
parameter %2: f32[8,8]* = "fc.weight" also "head.weight" also "third.weight"
parameter = "never_used.bias"
buffer %3: bf16[] = "norm.mean"
constant %4: bool[0,3] = "constant4"
%5: f32[8,8]* = aten::t(%2)
[%6: f32[2,8], %7: f32[2,8]] = aten::split.Tensor(%0, 2, 0)
pipe_split
%8: f32[2,8], None = aten::native_dropout(%6, 1e-05, True) no_grad
None, %9: f32[1], %10: f32[1] = aten::native_layer_norm(%0, [8], None, None, inf)
%11: f32[2] = aten::index.Tensor(%0, [None, %1])
%12: f32[1] = aten::clamp(%0, -inf, nan)
%13: f32[1] = aten::add.Scalar(%0, 9223372036854775807, -9223372036854775808)
%14: f32[1] = aten::add.Scalar(%0, -0.0, 2.0)
%15: f32[1] = aten::einsum("ij,\"k\"\\->ij", [%0, %5], None)
%16: f64[] = aten::zeros([], 7, None, device "cuda:1", False)
%17: f32[1] = aten::sum.dim_IntList(%0, None, True, None)
%18: f32[1] = aten::sum.dim_IntList(%0, [], True, None)
aten::_foreach_add_.Scalar([%0, %8], True)
%19: f32[1] = aten::cat([], 0)
%20: f32[1] = aten::add.Scalar(%0, 0.1, 1e+22)
pipe_split
return %8, None, %8, %0
module "" "Root" 0 13
module "fc" "torch::nn::LinearImpl" 1 1
)";

TEST(OperatorNamed, HasTheNameAndTheOverload) {
  const auto add = operator_named("aten::add.Tensor"), relu = operator_named("aten::relu");
  ASSERT_TRUE(add && relu);
  EXPECT_EQ(add->operator_name(), c10::OperatorName("aten::add", "Tensor"));
  EXPECT_EQ(c10::toString(add->operator_name()), "aten::add.Tensor");
  EXPECT_EQ(relu->operator_name(), c10::OperatorName("aten::relu", ""));
  EXPECT_EQ(c10::toString(relu->operator_name()), "aten::relu");
  for (const char* none : {"", "aten::add", "aten::add.", "aten::add.Tensor.Tensor", "aten::none", ".Tensor"})
    EXPECT_FALSE(operator_named(none)) << none;
}

TEST(Text, NumbersHaveTheirDtype) {
  EXPECT_EQ(number_dtype(ValueKind::Int), at::kLong);
  EXPECT_EQ(number_dtype(ValueKind::Float), at::kDouble);
  EXPECT_EQ(number_dtype(ValueKind::Bool), at::kBool);
}

TEST(Text, RoundTripOfEveryConstruct) {
  const Graph graph = parse_graph(kEverything);
  EXPECT_EQ(to_text(graph), kEverything);
  EXPECT_EQ(graph.inputs[1].name, "the \"index\" \\ of it");
  EXPECT_EQ(graph.attributes[0].aliases, (std::vector<std::string>{"head.weight", "third.weight"}));
  EXPECT_EQ(graph.attributes[1].value, kNoValue);
  EXPECT_EQ(graph.attributes[2].kind, AttributeKind::Buffer);
  EXPECT_EQ(graph.attributes[3].kind, AttributeKind::Constant);
  EXPECT_TRUE(graph.values[2].requires_grad);
  EXPECT_EQ(graph.values[4].sizes, (std::vector<int64_t>{0, 3}));
  EXPECT_TRUE(graph.nodes[2].is_split());
  EXPECT_FALSE(graph.nodes[3].grad_enabled);
  EXPECT_EQ(graph.nodes[3].results[1].values[0], kNoValue);
  EXPECT_EQ(graph.nodes[5].arguments[1].values, (std::vector<ValueId>{kNoValue, 1}));
  EXPECT_EQ(graph.outputs, (std::vector<ValueId>{8, kNoValue, 8, 0}));
  EXPECT_EQ(graph.module_calls[1].type, "torch::nn::LinearImpl");
}

const std::string kNewer = R"(input %0: f32[4,2] = "x"
input %1: bool[] = "p"
input %2: int = "n"
parameter %3: f32[2,2]* = "w"
buffer %4: i64[4] = "positions" also "other.positions" transient
buffer = "unused" transient
autocast 0 = cpu bf16
autocast 1 = cpu f16 disabled no_cache in 0
autocast 2 = cuda f16 in 0
%5: bf16[4,2]* = aten::linear(%0, %3, None) autocast 0
%6: int = aten::sym_size.int(%5, 0)
%7: float = plumbline::number_mul(%6, 0.5)
%8: float = plumbline::number_truediv(%6, 2)
%9: bool = plumbline::number_lt(%6, %7)
%10: f32[8] = aten::reshape(%0, [%6, -1]) no_grad autocast 1
%11: f32[4,2] = aten::add.Scalar(%0, complex(0.5, -inf), %8)
[%12: f32[4,2], None] = plumbline::cond(%9, [%0, %6]) autocast 2
then {
  input %0: f32[4,2] = "a"
  input %1: int = "n"
  autocast 0 = cpu bf16
  %2: bool = aten::is_nonzero(%0)
  [%3: f32[4,2]] = plumbline::cond(%2, [%0]) autocast 0
  then {
    input %0: f32[4,2] = "b"
    return %0
  }
  else {
    input %0: f32[4,2] = "b"
    constant %1: f32[] = "c"
    %2: f32[4,2] = aten::mul.Tensor(%0, %1)
    return %2
    module "deep" "Deep" 0 1
  }
  return %3, %3
}
else {
  input %0: f32[4,2] = "a"
  input %1: int = "n"
  return %0, None
}
[%13: f32[4,2]*, %14: int] = plumbline::call_stage(2, [%12, None, %6])
pipe_split
return %12, %6, %9
module "" "Root" 0 8
)";

TEST(Text, RoundTripOfNumbersRegionsAndBranches) {
  const Graph graph = parse_graph(kNewer);
  EXPECT_EQ(to_text(graph), kNewer);
  EXPECT_EQ(graph.values[6].kind, ValueKind::Int);
  EXPECT_EQ(graph.values[6].dtype, at::kLong);
  EXPECT_EQ(graph.values[7].kind, ValueKind::Float);
  EXPECT_EQ(graph.values[7].dtype, at::kDouble);
  EXPECT_EQ(graph.values[9].kind, ValueKind::Bool);
  EXPECT_EQ(graph.values[9].dtype, at::kBool);
  EXPECT_FALSE(graph.attributes[1].persistent);
  EXPECT_TRUE(graph.attributes[0].persistent);
  EXPECT_EQ(graph.autocast[1], (AutocastRegion{c10::kCPU, at::kHalf, false, false, 0}));
  EXPECT_EQ(graph.autocast[2], (AutocastRegion{c10::kCUDA, at::kHalf, true, true, 0}));
  EXPECT_EQ(graph.nodes[0].autocast, 0);
  EXPECT_EQ(graph.nodes[1].autocast, -1);
  EXPECT_EQ(graph.nodes[5].autocast, 1);
  const Argument& sizes = graph.nodes[5].arguments[1];
  EXPECT_EQ(sizes.kind, Argument::Kind::NumberList);
  EXPECT_EQ(sizes.values, (std::vector<ValueId>{6, kNoValue}));
  EXPECT_EQ(sizes.constant.toIntVector(), (std::vector<int64_t>{0, -1}));
  EXPECT_EQ(graph.nodes[6].arguments[2].kind, Argument::Kind::Value);
  ASSERT_EQ(graph.nodes[7].branches.size(), 2u);
  EXPECT_EQ(graph.nodes[7].branches[0]->nodes[1].branches[1]->module_calls[0].name, "deep");
  EXPECT_EQ(graph.nodes[7].branches[0]->autocast.size(), 1u);
}

TEST(Text, ParsedBranchesAndNumbersRun) {
  const Program program(parse_graph(R"(input %0: f32[2,3] = "x"
%1: f32[] = aten::sum(%0, None)
%2: bool[] = aten::gt.Scalar(%1, 0.5)
[%3: f32[2,3]] = plumbline::cond(%2, [%0])
then {
  input %0: f32[2,3] = "a"
  %1: f32[2,3] = aten::sin(%0)
  return %1
}
else {
  input %0: f32[2,3] = "a"
  %1: f32[2,3] = aten::neg(%0)
  return %1
}
%4: int = aten::sym_size.int(%3, 1)
%5: f32[3,2] = aten::reshape(%3, [%4, -1])
return %5
)"));
  for (const double sign : {1.0, -1.0}) {
    const at::Tensor x = at::arange(1, 7).view({2, 3}) * sign;
    std::vector<at::Tensor> outputs;
    program.run(std::vector<at::Tensor>{x}, outputs);
    EXPECT_TRUE(at::equal(outputs[0], (sign > 0 ? x.sin() : x.neg()).reshape({3, 2})));
  }
}

/// Numbers of storages are not in the text.
void forget_storages(Graph& graph) {
  for (Value& value : graph.values) value.storage = -1;
  for (Node& node : graph.nodes)
    for (auto& branch : node.branches) {
      Graph copy = *branch;
      forget_storages(copy);
      branch = std::make_shared<const Graph>(std::move(copy));
    }
}

TEST(Text, RandomGraphsComeBack) {
  const unsigned first = std::random_device{}();
  for (unsigned seed = first; seed < first + 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Graph graph = testing::RandomGraph(seed).make();
    forget_storages(graph);
    const Graph again = parse_graph(to_text(graph));
    // The JSON form tells every field; its code shares none with the text's.
    EXPECT_EQ(to_json(again), to_json(graph)) << to_text(graph);
  }
}

TEST(Text, ControlCharactersInNamesKeepToTheirLine) {
  Graph graph = parse_graph("input %0: f32[] = \"x\"\nreturn %0\n");
  graph.inputs[0].name = "a\nreturn\\n\"";
  const Graph again = parse_graph(to_text(graph));
  EXPECT_EQ(again.inputs[0].name, graph.inputs[0].name);
}

TEST(Text, ArgumentsHaveTheTypesOfTheSchema) {
  const Graph graph = parse_graph(R"(input %0: f32[2,3] = "x"
%1: f32[2,3] = aten::dropout(%0, 1, False)
%2: f32[2,3] = aten::layer_norm(%0, [3], None, None, 1.0, True)
%3: f32[2,3] = aten::add.Scalar(%0, 1, True)
%4: f32[2,3] = aten::add.Scalar(%0, 1.0, 1)
%5: f32[2,3] = aten::zeros([], 6, None, device "cpu", None)
%6: f32[2,3] = aten::slice.Tensor(%0, 0, None, 9223372036854775807, 1)
None, None, None = aten::convolution_backward(%0, %0, %0, None, [1], [0], [1], False, [0], 1, [True, False, True])
%7: f32[2,3] = aten::upsample_nearest1d.vec(%0, None, [2, 0.5])
%8: f32[2,3] = aten::gelu(%0, "tanh")
return %1
)");
  auto constant = [&](size_t node, size_t argument) { return graph.nodes[node].arguments[argument].constant; };
  EXPECT_TRUE(constant(0, 1).isDouble());
  EXPECT_TRUE(constant(0, 2).isBool());
  EXPECT_TRUE(constant(1, 1).isIntList());
  EXPECT_TRUE(constant(1, 2).isNone());  // Tensor? is None
  EXPECT_TRUE(constant(1, 4).isDouble());
  EXPECT_TRUE(constant(2, 1).isInt());
  EXPECT_TRUE(constant(2, 2).isBool());
  EXPECT_TRUE(constant(3, 1).isDouble());
  EXPECT_TRUE(constant(4, 0).isIntList());
  EXPECT_TRUE(constant(4, 0).toListRef().empty());
  EXPECT_TRUE(constant(4, 1).isInt());
  EXPECT_TRUE(constant(4, 3).isDevice());
  EXPECT_TRUE(constant(5, 2).isNone());
  EXPECT_EQ(constant(5, 3).toInt(), std::numeric_limits<int64_t>::max());
  EXPECT_TRUE(constant(6, 10).isBoolList());
  EXPECT_EQ(constant(6, 10).toBoolList().vec(), (std::vector<bool>{true, false, true}));
  EXPECT_TRUE(constant(7, 2).isDoubleList());
  EXPECT_TRUE(constant(8, 1).isString());
}

TEST(Text, FloatsReadBackToTheSameBits) {
  for (const double x : {0.1, 1.0, -0.0, 1e-05, 1e300, 5e-324, 1.0 / 3.0, 0.30000000000000004, 123456789.0, 1e15,
                         std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    Graph graph = parse_graph("input %0: f32[] = \"x\"\n%1: f32[] = aten::dropout(%0, 0.5, False)\nreturn %1\n");
    graph.nodes[0].arguments[1].constant = x;
    const c10::IValue again = parse_graph(to_text(graph)).nodes[0].arguments[1].constant;
    ASSERT_TRUE(again.isDouble()) << x;
    EXPECT_EQ(again.toDouble(), x);
    EXPECT_EQ(std::signbit(again.toDouble()), std::signbit(x)) << x;
  }
  const Graph nan = parse_graph("input %0: f32[] = \"x\"\n%1: f32[] = aten::add.Scalar(%0, nan, 1)\nreturn %1\n");
  EXPECT_TRUE(std::isnan(nan.nodes[0].arguments[1].constant.toDouble()));
}

TEST(Text, ParsedCallsEqualDirectCalls) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({4, 6}), index = at::tensor({3, 0, 1});
  struct Case {
    const char* line;  // of %0 = x and %1 = index, defines %2
    at::Tensor expected;
  };
  const Case cases[] = {
      {"%2: f32[] = aten::add.Scalar(%0, 1, 3)", at::add(x, 1, 3)},
      {"%2: f32[] = aten::layer_norm(%0, [6], None, None, 1, True)", at::layer_norm(x, {6}, {}, {}, 1.0)},
      {"%2: f32[] = aten::index.Tensor(%0, [None, %1])", at::index(x, {std::nullopt, index})},
      {"%2: f32[] = aten::index.Tensor(%0, [%1])", at::index(x, {index})},
      {"%2: f32[] = aten::sum.dim_IntList(%0, [1], True, 7)", at::sum(x, {1}, true, at::kDouble)},
      {"%2: f32[] = aten::sum.dim_IntList(%0, [], False, None)", at::sum(x, at::IntArrayRef{}, false)},
      {"%2: f32[] = aten::clamp(%0, None, 0.25)", at::clamp(x, std::nullopt, 0.25)},
      {"%2: f32[] = aten::pow.Tensor_Scalar(%0, 2)", at::pow(x, 2)},
      {"%2: f32[] = aten::einsum(\"ij,kj->ik\", [%0, %0], None)", at::einsum("ij,kj->ik", {x, x})},
      {"%2: f32[] = aten::to.dtype_layout(%0, 15, 0, device \"cpu\", None, False, True, None)", x.to(at::kBFloat16)},
      {"%2: f32[] = aten::slice.Tensor(%0, 1, None, 9223372036854775807, 2)", x.slice(1, 0, 6, 2)},
      {"%2: f32[] = aten::full([2], inf, None, None, None, None)", at::full({2}, INFINITY)},
      {"%2: f32[] = aten::gelu(%0, \"tanh\")", at::gelu(x, "tanh")},
      {"%2: f32[] = aten::var.correction(%0, [0], correction=1, keepdim=False)", {}},  // keywords are no text form
  };
  for (const Case& c : cases) {
    const std::string text =
        "input %0: f32[4,6] = \"x\"\ninput %1: i64[3] = \"i\"\n" + std::string(c.line) + "\nreturn %2\n";
    if (!c.expected.defined()) {
      EXPECT_THROW(parse_graph(text), InputError) << c.line;
      continue;
    }
    const Program program(parse_graph(text));
    std::vector<at::Tensor> outputs;
    program.run(std::vector<at::Tensor>{x, index}, outputs);
    EXPECT_EQ(outputs[0].scalar_type(), c.expected.scalar_type()) << c.line;
    EXPECT_TRUE(at::equal(outputs[0], c.expected)) << c.line;
  }
}

TEST(Text, ErrorsNameLineColumnAndWhatWasExpected) {
  struct Case {
    const char* text;  // after the line: input %0: f32[2] = "x"
    const char* place;
    const char* expected;
  };
  const Case cases[] = {
      {"%1: f32[2] = aten::no_such_op(%0)\nreturn %1", "line 2, column 14", "an operator that this LibTorch knows"},
      {"%1: f32[2] = aten::add.NoOverload(%0)\nreturn %1", "line 2, column 14", "'aten::add.NoOverload'"},
      {"%1: f32[2] = aten::relu(%7)\nreturn %1", "line 2, column 26", "a value that a line above defines, not %7"},
      {"%1: f32[2] = aten::relu(%1)\nreturn %1", "line 2, column 26", "not %1"},
      {"%1: f32[2] = aten::cat([%0, %3], 0)\nreturn %1", "line 2, column 30", "not %3"},
      {"return %2", "line 2, column 9", "not %2"},
      {"%0: f32[2] = aten::relu(%0)\nreturn %0", "line 2, column 2", "%0 is defined already"},
      {"[%1: f32[2], %1: f32[2]] = aten::split.Tensor(%0, 1, 0)\nreturn", "line 2, column 15", "defined already"},
      {"parameter %0: f32[2] = \"w\"\nreturn", "line 2, column 12", "%0 is defined already"},
      {"%1: f32[2] = aten::add.Tensor(%0, %0)\nreturn %1", "line 2, column 37", "','"},
      {"%1: f32[2] = aten::add.Tensor(%0, %0, 1, 1)\nreturn %1", "line 2, column 40", "')'"},
      {"%1: f32[2] = aten::add.Tensor(%0, x, 1)\nreturn %1", "line 2, column 35", "a tensor such as %0"},
      {"%1: f32[2] = aten::add.Tensor(%0, %0, %0)\nreturn %1", "line 2, column 40",
       "a value of type Scalar; %0 is a tensor"},
      {"%1: f32[2] = aten::add.Tensor(%0, %0, None)\nreturn %1", "line 2, column 39", "a number"},
      {"%1: f32[2] = aten::softmax.int(%0, 1.5, None)\nreturn %1", "line 2, column 36", "an integer"},
      {"%1: f32[2] = aten::softmax.int(%0, True, None)\nreturn %1", "line 2, column 36", "an integer"},
      {"%1: f32[2] = aten::softmax.int(%0, 99999999999999999999, None)\nreturn %1", "line 2, column 36", "an integer"},
      {"%1: f32[2] = aten::dropout(%0, \"a\", True)\nreturn %1", "line 2, column 32", "a number"},
      {"%1: f32[2] = aten::dropout(%0, 0.1, 1)\nreturn %1", "line 2, column 37", "True or False"},
      {"%1: f32[2] = aten::gelu(%0, tanh)\nreturn %1", "line 2, column 29", "'\"'"},
      {"%1: f32[2] = aten::gelu(%0, \"tanh)\nreturn %1", "line 2, column 35", "'\"'"},
      {"%1: f32[2] = aten::sum.dim_IntList(%0, 1, True, None)\nreturn %1", "line 2, column 40", "a list in brackets"},
      {"%1: f32[2] = aten::sum.dim_IntList(%0, [1.5], True, None)\nreturn %1", "line 2, column 41", "an integer"},
      {"%1: f32[2] = aten::sum.dim_IntList(%0, [1 2], True, None)\nreturn %1", "line 2, column 43", "']'"},
      {"%1: f32[2] = aten::cat(%0, 0)\nreturn %1", "line 2, column 24", "a list in brackets"},
      {"%1: f32[2] = aten::relu([%0])\nreturn %1", "line 2, column 25", "a tensor such as %0"},
      {"%1: f32[2] = aten::bernoulli(%0, 7)\nreturn %1", "line 2, column 34", "None"},
      {"%1: f32[2] = aten::zeros([], None, None, device \"moon\", None)\nreturn %1", "line 2, column 49", "a device"},
      {"%1: f32[2], %2: f32[2] = aten::relu(%0)\nreturn %1", "line 2, column 26", "2 results, but aten::relu has 1"},
      {"aten::relu(%0)\nreturn", "line 2, column 1", "0 results, but aten::relu has 1"},
      {"[%1: f32[2]] = aten::relu(%0)\nreturn", "line 2, column 16", "a list"},
      {"%1: f32[2] = aten::split.Tensor(%0, 1, 0)\nreturn", "line 2, column 14", "one tensor"},
      {"%1: float[2] = aten::relu(%0)\nreturn", "line 2, column 5", "an element type such as f32"},
      {"%1: f32[-2] = aten::relu(%0)\nreturn", "line 2, column 9", "a size of at least 0"},
      {"%1 f32[2] = aten::relu(%0)\nreturn", "line 2, column 4", "':'"},
      {"%1: f32[2] aten::relu(%0)\nreturn", "line 2, column 12", "'='"},
      {"%x: f32[2] = aten::relu(%0)\nreturn", "line 2, column 2", "an integer"},
      {"%1: f32[2] = aten::relu(%0) nograd\nreturn", "line 2, column 29", "the end of the line"},
      {"%99999999: f32[2] = aten::relu(%0)\nreturn", "line 2, column 2", "between 0 and 10000000"},
      {"input None = \"y\"\nreturn", "line 2, column 7", "a value such as %0"},
      {"# a note\n\n  pipe_split now\nreturn", "line 4, column 14", "the end of the line"},
      {"return %0\nreturn %0", "line 3, column 1", "after 'return'"},
      {"return %0\n%1: f32[2] = aten::relu(%0)", "line 3, column 1", "after 'return'"},
      {"return %0\nmodule \"a\" \"A\" 0 3", "line 3, column 18", "between 0 and 0"},
      {"%1: f32[2] = aten::relu(%0)", "", "no 'return' line"},
      {"%1: int = aten::relu(%0)\nreturn", "line 2, column 11", "%1 is an int; that of aten::relu is of type Tensor"},
      {"%1: f32[2] = aten::sym_size.int(%0, 0)\nreturn", "line 2, column 14", "%1 is a tensor"},
      {"%1: int* = aten::sym_size.int(%0, 0)\nreturn", "line 2, column 5", "an element type"},
      {"%1: int = aten::sym_size.int(%0, 0)\n%2: f32[2] = aten::relu(%1)\nreturn", "line 3, column 26",
       "a value of type Tensor; %1 is an int"},
      {"%1: float[2] = aten::relu(%0)\nreturn", "line 2, column 5", "an element type such as f32"},
      {"%1: f32[2] = aten::reshape(%0, [%0, 2])\nreturn", "line 2, column 34", "%0 is a tensor"},
      {"%1: f32[2] = aten::reshape(%0, [%5, 2])\nreturn", "line 2, column 34", "a value that a line above defines"},
      {"%1: f32[2] = aten::add.Scalar(%0, complex(1), 1)\nreturn", "line 2, column 44", "','"},
      {"%1: f32[2] = aten::add.Scalar(%0, complex(1, x), 1)\nreturn", "line 2, column 46", "a number"},
      {"parameter %1: int = \"n\"\nreturn", "line 2, column 15", "a tensor"},
      {"autocast 1 = cpu bf16\nreturn", "line 2, column 10", "autocast 0, the next region"},
      {"autocast 0 = moon bf16\nreturn", "line 2, column 14", "a type of device"},
      {"autocast 0 = cuda:1 bf16\nreturn", "line 2, column 14", "without a number"},
      {"autocast 0 = cpu bf17\nreturn", "line 2, column 18", "an element type"},
      {"autocast 0 = cpu bf16 on\nreturn", "line 2, column 23", "the end of the line"},
      {"autocast 0 = cpu bf16 in 0\nreturn", "line 2, column 26", "that a line above describes, not 0"},
      {"%1: f32[2] = aten::relu(%0) autocast 0\nreturn", "line 2, column 38", "that a line above describes, not 0"},
      {"[%1: f32[2]] = plumbline::cond(%0, [%0])\nreturn %1", "line 3, column 1", "'then {'"},
      {"[%1: f32[2]] = plumbline::cond(%0, [%0])", "", "at its end lacks a branch"},
      {"[%1: f32[2]] = plumbline::cond(%0, [%0])\nthen {\n", "line 3, column 7", "a '}' that closes this branch"},
      {"[%1: f32[2]] = plumbline::cond(%0, [%0])\nthen {\n}\n", "line 4", "a 'return' line before '}'"},
      {"[%1: f32[2]] = plumbline::cond(%0, [%0])\nthen {\nreturn\n}\n", "line 3, column 1",
       "as many inputs as the call has operands (1), not 0"},
      {"[%1: f32[2]] = plumbline::cond(%0, [%0])\nthen {\ninput %0: f32[2] = \"x\"\nreturn\n}\n", "line 3, column 1",
       "as many outputs as the call has results (1), not 0"},
      {"[%1: f32[2]] = plumbline::cond(%0, [%0])\nthen {\ninput %0: f32[2] = \"x\"\nreturn %0\n}\nreturn %1",
       "line 7, column 1", "'else {'"},
      {"}\nreturn", "line 2, column 1", "'}'"},
  };
  for (const Case& c : cases) {
    try {
      parse_graph("input %0: f32[2] = \"x\"\n" + std::string(c.text) + "\n");
      ADD_FAILURE() << "accepted: " << c.text;
    } catch (const InputError& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find(c.place), std::string::npos) << c.text << "\n  " << what;
      EXPECT_NE(what.find(c.expected), std::string::npos) << c.text << "\n  " << what;
      EXPECT_EQ(what.find('\n'), std::string::npos) << what;
    } catch (const std::exception& error) {
      ADD_FAILURE() << c.text << ": not an InputError: " << error.what();
    }
  }
}

TEST(Graph, VerifyRefusesBrokenGraphs) {
  const auto broken = [](const std::function<void(Graph&)>& breaking) {
    Graph graph = parse_graph("input %0: f32[] = \"x\"\n%1: f32[] = aten::relu(%0)\nreturn %1\n");
    verify(graph);
    breaking(graph);
    EXPECT_THROW(verify(graph), Error);
  };
  broken([](Graph& g) { g.nodes[0].arguments[0].values[0] = 1; });
  broken([](Graph& g) { g.nodes[0].results[0].values[0] = 0; });
  broken([](Graph& g) { g.inputs[0].value = 9; });
  broken([](Graph& g) { g.outputs[0] = 2; });
  broken([](Graph& g) { g.nodes.push_back(g.nodes[0]); });
}

TEST(Graph, MutationsAndRandomNodes) {
  struct Case {
    const char* line;
    std::vector<ValueId> written;
    bool random;
  };
  const Case cases[] = {
      {"%2: f32[] = aten::add.Tensor(%0, %1, 1)", {}, false},
      {"%2: f32[] = aten::add_.Tensor(%0, %1, 1)", {0}, false},
      {"%2: f32[] = aten::add.out(%0, %1, 1, %1)", {1}, false},
      {"aten::_foreach_add_.Scalar([%0, %1], 1)", {0, 1}, false},
      {"%2: f32[] = aten::batch_norm(%0, None, None, %1, %0, True, 0.1, 1e-05, False)", {1, 0}, false},
      {"%2: f32[] = aten::batch_norm(%0, None, None, %1, %0, False, 0.1, 1e-05, False)", {}, false},
      {"%2: f32[] = aten::dropout(%0, 0.5, True)", {}, true},
      {"%2: f32[] = aten::dropout(%0, 0.5, False)", {}, false},
      {"%2: f32[] = aten::dropout(%0, 0, True)", {}, false},
      {"%2: f32[] = aten::scaled_dot_product_attention(%0, %0, %0, None, 0.1, True, None, False)", {}, true},
      {"%2: f32[] = aten::scaled_dot_product_attention(%0, %0, %0, None, 0.0, True, None, False)", {}, false},
      {"%2: f32[] = aten::randn_like(%0, None, None, None, None, None)", {}, true},
      {"%2: f32[] = aten::bernoulli_.float(%0, 0.5, None)", {0}, true},
      {"%2: f32[] = aten::bernoulli_.float(%0, 0.0, None)", {0}, true},
      {"%2: f32[] = aten::bernoulli.p(%0, 0.0, None)", {}, true},
  };
  for (const Case& c : cases) {
    const Graph graph =
        parse_graph("input %0: f32[] = \"x\"\ninput %1: f32[] = \"y\"\n" + std::string(c.line) + "\nreturn %0\n");
    std::vector<ValueId> written;
    for_each_mutation(graph.nodes[0], [&](ValueId v) { written.push_back(v); });
    EXPECT_EQ(written, c.written) << c.line;
    EXPECT_EQ(draws_random_numbers(graph.nodes[0]), c.random) << c.line;
  }
}

}  // namespace
}  // namespace plumbline::graph
