#include "runtime/graph/io/json.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/error.h"
#include "runtime/graph/io/json_constant.h"
#include "runtime/graph/io/text.h"
#include "runtime/graph/run/program.h"
#include "runtime/graph/testing/parse.h"
#include "runtime/testing/random_graph.h"
#include "runtime/testing/refusal.h"

namespace plumbline::graph {
namespace {

using Json = nlohmann::json;

/// Through the text of the JSON, as files and messages go.
Graph round_trip(const Graph& graph) {
  const Json json = parse_json(json_text(to_json(graph)), "j");
  return graph_from_json(JsonPlace(json, "j"));
}

c10::IValue round_trip(const c10::IValue& constant) {
  const Json json = parse_json(json_text(constant_to_json(constant)), "j");
  return constant_from_json(JsonPlace(json, "j"));
}

TEST(Json, IsWhatTheHeaderSays) {
  Graph graph = parse_graph(R"(input %0: f32[4,8] = "x"
parameter %1: f32[8,8]* = "w" also "tied"
autocast 0 = cpu bf16 disabled no_cache
%2: f32[4,8]* = aten::mm(%0, %1) no_grad autocast 0
pipe_split
%3: f32[4] = aten::sum.dim_IntList(%2, [1], False, None)
return %3, None
module "fc" "Linear" 0 1
)");
  graph.values[2].storage = 7;
  // By hand, after the header.
  const Json expected = Json::parse(R"({"format": "plumbline-graph/1",
    "values": [
      {"kind": "tensor", "dtype": "f32", "sizes": [4, 8], "requires_grad": false, "storage": -1},
      {"kind": "tensor", "dtype": "f32", "sizes": [8, 8], "requires_grad": true, "storage": -1},
      {"kind": "tensor", "dtype": "f32", "sizes": [4, 8], "requires_grad": true, "storage": 7},
      {"kind": "tensor", "dtype": "f32", "sizes": [4], "requires_grad": false, "storage": -1}],
    "inputs": [{"name": "x", "value": 0}],
    "attributes": [{"kind": "parameter", "name": "w", "aliases": ["tied"], "persistent": true, "value": 1}],
    "autocast": [{"device": "cpu", "dtype": "bf16", "enabled": false, "cache": false, "outer": null}],
    "nodes": [
      {"op": "aten::mm", "arguments": [{"value": 0}, {"value": 1}], "results": [{"value": 2}],
       "grad_enabled": false, "autocast": 0},
      {"op": null, "arguments": [], "results": [], "grad_enabled": true, "autocast": null},
      {"op": "aten::sum.dim_IntList",
       "arguments": [{"value": 2}, {"constant": {"list": "int", "items": [1]}}, {"constant": false}, {"constant": null}],
       "results": [{"value": 3}], "grad_enabled": true, "autocast": null}],
    "outputs": [3, null],
    "module_calls": [{"name": "fc", "type": "Linear", "begin": 0, "end": 1}]})");
  EXPECT_EQ(to_json(graph), expected);
}

TEST(Json, RandomGraphsComeBackAndRunTheSame) {
  const unsigned first = std::random_device{}();
  for (unsigned seed = first; seed < first + 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    testing::RandomGraph random(seed);
    const Graph graph = random.make();
    Graph again = round_trip(graph);
    EXPECT_EQ(to_text(again), to_text(graph));
    EXPECT_EQ(again.autocast, graph.autocast);
    ASSERT_EQ(again.values.size(), graph.values.size());
    for (size_t v = 0; v < graph.values.size(); ++v) EXPECT_EQ(again.values[v].storage, graph.values[v].storage);
    for (size_t i = 0; i < graph.attributes.size(); ++i) again.attributes[i].tensor = graph.attributes[i].tensor;
    const std::vector<at::Tensor> inputs = {random.tensor(true), random.tensor(false)};
    std::vector<at::Tensor> one, other;
    Program(graph).run(inputs, one);
    Program(again).run(inputs, other);
    for (size_t i = 0; i < one.size(); ++i) {
      ASSERT_EQ(one[i].defined(), other[i].defined());
      if (!one[i].defined()) continue;
      EXPECT_TRUE(at::equal(one[i].nan_to_num(3, 4, 5), other[i].nan_to_num(3, 4, 5)));
      EXPECT_EQ(one[i].requires_grad(), other[i].requires_grad());
    }
  }
}

TEST(Json, FloatsComeBackBitForBit) {
  for (const uint64_t bits :
       std::vector<uint64_t>{0x0000000000000000u, 0x8000000000000000u, 0x0000000000000001u, 0x3fb999999999999au,
                             0x7fefffffffffffffu, 0x7ff0000000000000u, 0xfff0000000000000u, 0x7ff8000000000000u,
                             0xfff8000000000000u, 0x7ff0000000000001u, 0x4340000000000000u, 0x3ff0000000000000u}) {
    const c10::IValue again = round_trip(c10::IValue(std::bit_cast<double>(bits)));
    ASSERT_TRUE(again.isDouble()) << std::hex << bits;
    EXPECT_EQ(std::bit_cast<uint64_t>(again.toDouble()), bits) << std::hex << bits;
  }
}

TEST(Json, ConstantsKeepTheirTypes) {
  EXPECT_TRUE(round_trip(c10::IValue()).isNone());
  EXPECT_TRUE(round_trip(c10::IValue(at::Tensor())).isTensor()) << "an undefined tensor is not None";
  EXPECT_TRUE(round_trip(c10::IValue(true)).isBool());
  EXPECT_EQ(round_trip(c10::IValue(std::numeric_limits<int64_t>::min())).toInt(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(round_trip(c10::IValue("a\n\"\u00e9")).toStringRef(), "a\n\"\u00e9");
  EXPECT_EQ(round_trip(c10::IValue(c10::Device("cuda:1"))).toDevice(), c10::Device("cuda:1"));
  EXPECT_EQ(round_trip(c10::IValue(c10::complex<double>(0.5, -INFINITY))).toComplexDouble(),
            c10::complex<double>(0.5, -INFINITY));
  EXPECT_EQ(round_trip(c10::IValue(std::vector<int64_t>{1, -2})).toIntVector(), (std::vector<int64_t>{1, -2}));
  EXPECT_TRUE(round_trip(c10::IValue(std::vector<int64_t>())).isIntList());
  EXPECT_TRUE(round_trip(c10::IValue(std::vector<double>())).isDoubleList());
  EXPECT_EQ(round_trip(c10::IValue(std::vector<double>{1, 0.5})).toDoubleVector(), (std::vector<double>{1, 0.5}));
  EXPECT_EQ(round_trip(c10::IValue(c10::List<bool>({true, false}))).toBoolList().vec(),
            (std::vector<bool>{true, false}));
  c10::List<std::optional<double>> optionals({0.5, std::nullopt});
  const c10::IValue again = round_trip(c10::IValue(optionals));
  EXPECT_EQ(*again.toList().elementType(), *optionals.elementType());
  EXPECT_TRUE(again.toListRef()[1].isNone());
  c10::impl::GenericList numbers(c10::NumberType::get());
  numbers.push_back(int64_t{1});
  numbers.push_back(1.0);
  const c10::IValue mixed = round_trip(c10::IValue(numbers));
  EXPECT_TRUE(mixed.toListRef()[0].isInt());
  EXPECT_TRUE(mixed.toListRef()[1].isDouble());
  EXPECT_THROW(constant_to_json(c10::IValue(at::zeros({2}))), Error);
}

TEST(Json, AListOfResultsIsReadAsSuch) {
  const Json good = to_json(parse_graph(R"(input %0: f32[2,3] = "x"
[%1: f32[3], %2: f32[3]] = aten::unbind.int(%0, 0)
return %0
)"));
  const auto with = [&](const char* result) {
    Json json = good;
    json["nodes"][0]["results"][0] = Json::parse(result);
    return testing::refusal([&] { graph_from_json(JsonPlace(json, "j")); });
  };
  EXPECT_EQ(with(R"({"list": [1, 2]})"), "accepted");
  EXPECT_EQ(with(R"({"value": null})"), "accepted");
  testing::expect_line(with(R"({"value": 1})"),
                       "j: nodes[0].results[0]: ", R"(a "list", as the operator returns Tensor[])");
}

TEST(Json, BranchesMatchTheirCond) {
  const Json good = to_json(parse_graph(R"(input %0: f32[2] = "x"
input %1: bool[] = "p"
[%2: f32[2]] = plumbline::cond(%1, [%0, %0])
then {
  input %0: f32[2] = "a"
  input %1: f32[2] = "b"
  return %1
}
else {
  input %0: f32[2] = "a"
  input %1: f32[2] = "b"
  return %0
}
return %2
)"));
  const auto with = [&](const char* pointer, const char* to) {
    Json json = good;
    json[Json::json_pointer(pointer)] = Json::parse(to);
    return testing::refusal([&] { graph_from_json(JsonPlace(json, "j")); });
  };
  EXPECT_EQ(with("/outputs", "[2]"), "accepted") << "unchanged";
  testing::expect_line(with("/nodes/0/arguments/1", R"({"tensors": [0, 0, 0]})"),
                       "j: nodes[0].branches[0].inputs: ", "a list of 3");
  testing::expect_line(with("/nodes/0/branches/1/inputs", R"([{"name": "a", "value": 0}])"),
                       "j: nodes[0].branches[1].inputs: ", "a list of 2");
  testing::expect_line(with("/nodes/0/branches/1/outputs", "[0, 1]"),
                       "j: nodes[0].branches[1].outputs: ", "a list of 1");
  testing::expect_line(with("/nodes/0/branches", "[]"), "j: nodes[0].branches: ", "a list of 2");
  testing::expect_line(with("/nodes/0/arguments/0", R"({"constant": true})"),
                       "j: nodes[0].arguments[0]: ", "a \"value\", the predicate");
  for (const char* operands : {R"({"tensors": [0, null]})", R"({"value": 0})", R"({"optional_tensors": [0, 0]})"})
    testing::expect_line(with("/nodes/0/arguments/1", operands),
                         "j: nodes[0].arguments[1]: ", "\"tensors\", all of them values, the operands");
  Json without = good;
  without["nodes"][0].erase("branches");
  testing::expect_line(testing::refusal([&] { graph_from_json(JsonPlace(without, "j")); }),
                       "j: nodes[0]: ", "an object with \"branches\"");
}

TEST(Json, ErrorsNameThePlace) {
  const Graph graph = parse_graph(R"(input %0: f32[4] = "x"
parameter %1: f32[4] = "w"
autocast 0 = cpu bf16
%2: f32[4] = aten::add.Tensor(%0, %1, 1)
%3: int = aten::sym_size.int(%2, 0)
%4: f32[4] = aten::reshape(%2, [%3])
return %4
module "fc" "Linear" 0 1
)");
  const Json good = to_json(graph);
  struct Case {
    const char* pointer;  // where the JSON is changed
    const char* to;       // "" takes it away
    const char* place;
    const char* expected;
  };
  const Case cases[] = {
      {"/format", "\"plumbline-graph/2\"", "j: format: ", "\"plumbline-graph/1\""},
      {"/format", "", "j: ", "an object with \"format\""},
      {"/values/0/dtype", "\"f33\"", "values[0].dtype", "an element type"},
      {"/values/0/sizes", "[-1]", "values[0].sizes[0]", "an integer from 0"},
      {"/values/0/kind", "\"text\"", "values[0].kind", "one of tensor, int, float, bool"},
      {"/values/0/extra", "1", "values[0]", "no other members"},
      {"/inputs/0/value", "9", "inputs[0].value", "an integer from 0 to 4"},
      {"/inputs/0/value", "null", "inputs[0].value", "an integer from 0 to 4"},
      {"/attributes/0/kind", "\"weight\"", "attributes[0].kind", "one of parameter, buffer, constant"},
      {"/attributes/0/persistent", "1", "attributes[0].persistent", "true or false"},
      {"/autocast/0/device", "\"moon\"", "autocast[0].device", "a type of device"},
      {"/autocast/0/outer", "0", "autocast[0].outer", "an integer"},
      {"/nodes/0/op", "\"aten::no_such\"", "nodes[0].op", "an operator that this LibTorch knows"},
      {"/nodes/0/arguments/2", "", "nodes[0].arguments", "a list of 3"},
      {"/nodes/0/arguments/0", "{\"value\": 0, \"constant\": 1}", "nodes[0].arguments[0]", "one kind of argument"},
      {"/nodes/0/arguments/2/constant", "[1]", "nodes[0].arguments[2].constant", "a constant"},
      {"/nodes/0/arguments/2/constant", "{\"list\": \"int\", \"items\": [0.5]}", "constant.items[0]", "of type int"},
      {"/nodes/0/arguments/2/constant", "{\"list\": \"cow\", \"items\": []}", "constant.list", "the type of a list"},
      {"/nodes/0/arguments/2/constant", "{\"device\": \"moon\"}", "constant.device", "a device"},
      {"/nodes/0/arguments/2/constant", "{\"float\": \"big\"}", "constant.float", "one of inf, -inf, nan"},
      {"/nodes/0/arguments/2/constant", "{\"complex\": [1.0]}", "constant.complex", "a list of 2"},
      {"/nodes/0/arguments/2/constant", "{\"tensor\": 3}", "constant.tensor", "null: an undefined tensor"},
      {"/nodes/0/arguments/2/constant", "\"text\"", "nodes[0].arguments[2].constant", "a constant of type Scalar"},
      {"/nodes/0/arguments/0", "{\"constant\": \"text\"}", "nodes[0].arguments[0].constant", "of type Tensor"},
      {"/nodes/1/arguments/1/constant", "null", "nodes[1].arguments[1].constant", "a constant of type int"},
      {"/nodes/2/arguments/1/constant", "{\"list\": \"str\", \"items\": [\"a\"]}", "nodes[2].arguments[1].constant",
       "of type int[]"},
      {"/nodes/2/arguments/1/constant/items", "[]", "nodes[2].arguments[1].constant", "a list of 1"},
      {"/nodes/0/results", "[]", "nodes[0].results", "a list of 1"},
      {"/nodes/0/results/0", "{\"value\": 2, \"list\": [2]}", "nodes[0].results[0]", "one kind of result"},
      {"/nodes/0/results/0", "{}", "nodes[0].results[0]", "one kind of result"},
      {"/nodes/0/results/0", "{\"list\": [2]}", "nodes[0].results[0]", "a \"value\", as the operator returns Tensor"},
      {"/nodes/0/autocast", "1", "nodes[0].autocast", "an integer from 0 to 0"},
      {"/nodes/0/branches", "[1]", "nodes[0].branches", "no branches, which only plumbline::cond has"},
      {"/nodes/0/arguments/0/value", "4", "j: ", "node 0 uses %4"},
      {"/outputs/0", "5", "outputs[0]", "an integer from 0 to 4"},
      {"/module_calls/0/end", "4", "module_calls[0].end", "an integer from 0 to 3"},
  };
  for (const Case& c : cases) {
    Json json = good;
    const Json::json_pointer pointer(c.pointer);
    if (*c.to) {
      json[pointer] = Json::parse(c.to);
    } else if (json[pointer.parent_pointer()].is_array()) {
      json[pointer.parent_pointer()].erase(std::stoul(pointer.back()));
    } else {
      json[pointer.parent_pointer()].erase(pointer.back());
    }
    const std::string what = testing::refusal([&] { graph_from_json(JsonPlace(json, "j")); });
    EXPECT_NE(what.find(c.place), std::string::npos) << c.pointer << " " << c.to << "\n  " << what;
    EXPECT_NE(what.find(c.expected), std::string::npos) << c.pointer << "\n  " << what;
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace plumbline::graph
