#include "runtime/capture/pt2/graph_builder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "runtime/capture/pt2/program.h"
#include "runtime/capture/pt2/testing/archives.h"
#include "runtime/graph/io/text.h"
#include "runtime/graph/run/program.h"
#include "runtime/graph/testing/parse.h"
#include "runtime/testing/refusal.h"

namespace plumbline::capture::pt2 {
namespace {

using Tensors = std::vector<at::Tensor>;

capture::ExportedProgram read(const std::string& nodes, const std::string& outputs) {
  const TemporaryFolder folder;
  return capture::read_program(write_archive(folder, program_of(nodes, outputs)));
}

Tensors run(const std::string& nodes, const std::string& outputs, const at::Tensor& x) {
  const capture::ExportedProgram program = read(nodes, outputs);
  const graph::Program executable(program.graph);
  Tensors results;
  executable.run(Tensors{x}, results);
  return results;
}

std::string refusal(const std::string& nodes, const std::string& outputs = "[]") {
  const std::string text = refusal_of([&] { read(nodes, outputs); });
  const size_t at = text.find("model.pt2: ");
  return at == std::string::npos ? text : text.substr(at + 11);
}

constexpr const char* kX = "{'as_tensor': {'name': 'x'}}";
std::string tensor(const std::string& name) { return "{'as_tensor': {'name': '" + name + "'}}"; }
const at::Tensor& sample() {
  static const at::Tensor x = at::arange(6, at::kFloat).reshape({2, 3}) - 2;
  return x;
}

TEST(GraphBuilder, WhatWasChangedInPlaceIsTheResultOfTheChange) {
  const capture::ExportedProgram program = read(R"([
    ['torch.ops.aten.relu.default', 'a', {'self': {'as_tensor': {'name': 'x'}}}, [{'as_tensor': {'name': 'a'}}]],
    ['torch.ops.aten.add_.Tensor', 'b', {'self': {'as_tensor': {'name': 'a'}}, 'other': {'as_int': 1}}, [{'as_tensor': {'name': 'b'}}]],
    ['torch.ops.aten.mul_.Tensor', 'c', {'self': {'as_tensor': {'name': 'a'}}, 'other': {'as_int': 3}}, [{'as_tensor': {'name': 'c'}}]],
    ['torch.ops.aten.neg.default', 'd', {'self': {'as_tensor': {'name': 'a'}}}, [{'as_tensor': {'name': 'd'}}]]])",
                                                "[" + tensor("d") + ", " + tensor("a") + "]");
  EXPECT_EQ(graph::to_text(program.graph), R"(input %0: f32[2,3] = "x"
%1: f32[] = aten::relu(%0)
%2: f32[] = aten::add_.Tensor(%1, 1, 1)
%3: f32[] = aten::mul_.Tensor(%2, 3)
%4: f32[] = aten::neg(%3)
return %4, %3
)");
}

// The number follows the type promotion of numbers: a half times 2.5 is a half, even without dimensions.
TEST(GraphBuilder, NumbersForTensorsAreNumbersToTypePromotion) {
  const std::string nodes = R"([
    ['torch.ops.aten.sum.default', 's', {'self': {'as_tensor': {'name': 'x'}}}, [{'as_tensor': {'name': 's'}}]],
    ['torch.ops.aten.mul.Tensor', 'p', {'self': {'as_tensor': {'name': 's'}}, 'other': {'as_float': 2.5}}, [{'as_tensor': {'name': 'p'}}]],
    ['torch.ops.aten.sym_size.int', 'n', {'self': {'as_tensor': {'name': 'x'}}, 'dim': {'as_int': 1}}, [{'as_sym_int': {'as_name': 'n'}}]],
    ['torch.ops.aten.mul.Tensor', 'q', {'self': {'as_tensor': {'name': 'p'}}, 'other': {'as_sym_int': {'as_name': 'n'}}}, [{'as_tensor': {'name': 'q'}}]]])";
  const Tensors out = run(nodes, "[" + tensor("q") + "]", sample().to(at::kHalf));
  EXPECT_EQ(out[0].scalar_type(), at::kHalf);
  EXPECT_EQ(out[0].item<double>(), 3 * 2.5 * 3);
}

// A fraction is not cut off, and a number that int64_t does not have is not converted.
TEST(GraphBuilder, WholeNumbersAreWhole) {
  for (const char* number : {"2.5", "1e30", "18446744073709551615", "true"}) {
    const std::string add =
        "[['torch.ops.aten.add.Tensor', 'a', {'self': {'as_tensor': {'name': 'x'}}, 'other': {'as_int': " +
        std::string(number) + "}}, [{'as_tensor': {'name': 'a'}}]]]";
    plumbline::testing::expect_part(refusal(add), "expected a whole number, not ");
  }
}

TEST(GraphBuilder, ConstantsTakeTheTypeThatTheSchemaAsksFor) {
  const capture::ExportedProgram program = read(R"([
    ['torch.ops.aten.layer_norm.default', 'n', {'input': {'as_tensor': {'name': 'x'}}, 'normalized_shape': {'as_int': 3}, 'weight': {'as_none': true}, 'eps': {'as_int': 2}}, [{'as_tensor': {'name': 'n'}}]],
    ['torch.ops.aten.full.default', 'f', {'size': {'as_ints': [2]}, 'fill_value': {'as_float': '-Infinity'}, 'dtype': {'as_scalar_type': 5}, 'layout': {'as_layout': 7}, 'device': {'as_device': {'type': 'cuda', 'index': 1}}}, [{'as_tensor': {'name': 'f'}}]],
    ['torch.ops.aten.index.Tensor', 'i', {'self': {'as_tensor': {'name': 'x'}}, 'indices': {'as_optional_tensors': [{'as_none': true}, {'as_tensor': {'name': 'f'}}]}}, [{'as_tensor': {'name': 'i'}}]],
    ['torch.ops.aten.contiguous.default', 'c', {'self': {'as_tensor': {'name': 'x'}}, 'memory_format': {'as_memory_format': 2}}, [{'as_tensor': {'name': 'c'}}]],
    ['torch.ops.aten.add.Scalar', 'z', {'self': {'as_tensor': {'name': 'x'}}, 'other': {'as_complex': {'real': 1.5, 'imag': 'Infinity'}}}, [{'as_tensor': {'name': 'z'}}]]])",
                                                "[]");
  EXPECT_EQ(graph::to_text(program.graph), R"(input %0: f32[2,3] = "x"
%1: f32[] = aten::layer_norm(%0, [3], None, None, 2.0, True)
%2: f32[] = aten::full([2], -inf, 4, 0, device "cpu", None)
%3: f32[] = aten::index.Tensor(%0, [None, %2])
%4: f32[] = aten::contiguous(%0, 2)
%5: f32[] = aten::add.Scalar(%0, complex(1.5, inf), 1)
return
)");
  EXPECT_EQ(graph::to_text(graph::parse_graph(graph::to_text(program.graph))), graph::to_text(program.graph));
}

TEST(GraphBuilder, SizesThatDependOnDataAreValues) {
  const std::string nodes = R"([
    ['torch.ops.aten.gt.Scalar', 'g', {'self': {'as_tensor': {'name': 'x'}}, 'other': {'as_int': 0}}, [{'as_tensor': {'name': 'g'}}]],
    ['torch.ops.aten.sum.default', 's', {'self': {'as_tensor': {'name': 'g'}}}, [{'as_tensor': {'name': 's'}}]],
    ['torch.ops.aten.item.default', 'n', {'self': {'as_tensor': {'name': 's'}}}, [{'as_sym_int': {'as_name': 'n'}}]],
    ['torch.ops.aten.sym_constrain_range_for_size.default', 'r', {'size': {'as_sym_int': {'as_name': 'n'}}, 'min': {'as_int': 0}, 'max': {'as_int': 6}}, []],
    ['_operator.ge', 'ge', {'a': {'as_sym_int': {'as_name': 'n'}}, 'b': {'as_int': 0}}, [{'as_sym_bool': {'as_name': 'ge'}}]],
    ['torch.ops.aten._assert_scalar.default', 'e', {'self': {'as_sym_bool': {'as_name': 'ge'}}, 'assert_msg': {'as_string': 'n >= 0'}}, []],
    ['_operator.mul', 'm', {'a': {'as_sym_int': {'as_name': 'n'}}, 'b': {'as_int': 2}}, [{'as_sym_int': {'as_name': 'm'}}]],
    ['_operator.floordiv', 'h', {'a': {'as_sym_int': {'as_name': 'm'}}, 'b': {'as_int': 3}}, [{'as_sym_int': {'as_name': 'h'}}]],
    ['torch.sym_max', 'k', {'a': {'as_sym_int': {'as_name': 'h'}}, 'b': {'as_int': 1}}, [{'as_sym_int': {'as_name': 'k'}}]],
    ['torch.sym_float', 'w', {'a': {'as_sym_int': {'as_name': 'k'}}}, [{'as_sym_float': {'as_name': 'w'}}]],
    ['torch.sym_not', 'no', {'a': {'as_sym_bool': {'as_name': 'ge'}}}, [{'as_sym_bool': {'as_name': 'no'}}]],
    ['torch.ops.aten.full.default', 'f', {'size': {'as_sym_ints': [{'as_name': 'k'}, {'as_int': 2}]}, 'fill_value': {'as_sym_float': {'as_name': 'w'}}}, [{'as_tensor': {'name': 'f'}}]]])";
  const Tensors out = run(nodes,
                          "[" + tensor("f") +
                              ", {'as_sym_int': {'as_name': 'n'}}, {'as_sym_float': {'as_name': 'w'}}, "
                              "{'as_sym_bool': {'as_name': 'no'}}, " +
                              tensor("f") + ", " + kX + "]",
                          sample());  // n = 3, m = 6, h = k = 2
  EXPECT_TRUE(at::equal(out[0], at::full({2, 2}, 2.0)));
  EXPECT_TRUE(at::equal(out[1], at::scalar_tensor(3, at::kLong)));
  EXPECT_TRUE(at::equal(out[2], at::scalar_tensor(2.0, at::kDouble)));
  EXPECT_TRUE(at::equal(out[3], at::scalar_tensor(false, at::kBool)));
  EXPECT_TRUE(out[4].is_same(out[0]));
  EXPECT_TRUE(at::equal(out[5], sample()));
}

TEST(GraphBuilder, RefusalsNameNodeOperatorAndModule) {
  const std::string inputs = "{'self': " + std::string(kX) + "}";
  const auto node = [&](const std::string& target, const std::string& arguments) {
    return "[['" + target + "', 'it', " + arguments + ", [], 'L__self__,,Net;L__self__a,a.b,Block']]";
  };
  const std::string higher = "torch.ops.higher_order.map_impl";
  EXPECT_EQ(refusal(node(higher, inputs)).find("node 'it' (" + higher + ") in module 'a.b': this higher-order"), 0U);
  EXPECT_NE(refusal(node("torch.ops.nobody.knows.default", inputs)).find("no kernel"), std::string::npos);
  EXPECT_NE(refusal(node("torch.ops.aten.from_file.default", "{'filename': {'as_string': '/tmp/none'}}"))
                .find("the operator maps a file of this machine"),
            std::string::npos);
  EXPECT_NE(refusal(node("builtins.len", inputs)).find("this Python function is not supported"), std::string::npos);
  const std::string relu = "torch.ops.aten.relu.default";
  EXPECT_NE(refusal(node(relu, "{}")).find("argument 'self' is missing"), std::string::npos);
  EXPECT_NE(refusal(node(relu, "{'other': {'as_int': 1}}")).find("no argument 'other'"), std::string::npos);
  EXPECT_NE(refusal(node(relu, "{'self': " + tensor("y") + "}")).find("'y', which nothing before it defines"),
            std::string::npos);
  EXPECT_NE(refusal(node(relu, "{'self': {'as_int_lists': [[1]]}}"))
                .find("argument 'self': an argument of the kind "
                      "as_int_lists is not supported"),
            std::string::npos);
  const std::string softmax = "torch.ops.aten.softmax.int", permute = "torch.ops.aten.permute.default";
  EXPECT_NE(refusal(node(softmax, "{'self': " + std::string(kX) + ", 'dim': {'as_string': 'x'}}"))
                .find("argument 'dim': it is str where int is expected"),
            std::string::npos);
  EXPECT_NE(refusal(node(permute, "{'self': " + std::string(kX) + ", 'dims': {'as_string': 'x'}}"))
                .find("argument 'dims': it is str where int[] is expected"),
            std::string::npos);
  EXPECT_NE(refusal(node(relu, "{'self': {'as_tensor': {}}}")).find("is malformed"), std::string::npos);
  EXPECT_NE(refusal("[]", "[" + tensor("y") + "]").find("'y', which nothing before it defines"), std::string::npos);
}

TEST(Arguments, AListOfTensorsTakesNoConstants) {
  const c10::FunctionSchema& cat = c10::Dispatcher::singleton().findSchemaOrThrow("aten::cat", "").schema();
  const auto failure_of = [&](const c10::IValue& constant) {
    return testing::failure([&] {
      convert_argument(nlohmann::json::parse(R"({"as_tensors": [{"name": "n"}]})"), cat.arguments()[0],
                       [&](const std::string&) { return Meaning{graph::kNoValue, constant}; });
    });
  };
  EXPECT_EQ(failure_of(3), "it is int where Tensor is expected");
  EXPECT_EQ(failure_of({}), "it is NoneType where Tensor is expected");
}

TEST(GraphBuilder, SizesOfNoTensorAreRefused) {
  const auto meta = [](const char* sizes) {
    return nlohmann::json::parse(std::string(R"({"dtype": 7, "requires_grad": false, "sizes": )") + sizes + "}");
  };
  EXPECT_EQ(value_of_meta(meta(R"([{"as_int": 0}, {"as_int": 1099511627776}])")).sizes.size(), 2U);
  for (const char* sizes : {R"([{"as_int":-5}])", R"([{"as_int":1099511627776},{"as_int":1099511627776}])"})
    EXPECT_EQ(testing::failure([&] { value_of_meta(meta(sizes)); }),
              std::string("sizes ") + sizes + " are of no tensor");
}

TEST(ModuleCalls, ACallThatItsParentInterruptsIsOneCall) {
  std::vector<graph::ModuleCall> calls;
  ModuleCallTracker tracker(calls);
  const char* stacks[] = {
      "r,,Net",
      "r,,Net;k.a,a,A;k.a.b,a.b,B",
      "r,,Net;k.a,a,A",              // interrupts a.b
      "r,,Net;k.a,a,A;k.a.b,a.b,B",  // the same call
      "",                            // where the one before was
      "r,,Net;k.a,a,A;k.a.b@1,a.b,B",
      "r,,Net;k.c,c,C",
      "r,,Net;k.a@1,a,A;k.a.b@2,a.b,B",
      "r,,Net",
  };
  for (int32_t i = 0; i < 9; ++i) tracker.add(i, stacks[i]);
  std::vector<std::string> found;
  for (const graph::ModuleCall& call : calls)
    found.push_back(call.name + " " + call.type + " " + std::to_string(call.begin) + " " + std::to_string(call.end));
  EXPECT_EQ(found, (std::vector<std::string>{"a A 1 6", "a.b B 1 5", "a.b B 5 6", "c C 6 7", "a A 7 8", "a.b B 7 8"}));
}

}  // namespace
}  // namespace plumbline::capture::pt2
