#include "runtime/partition/joint/json/joint_json.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/io/gzip.h"
#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/testing/golden_files.h"
#include "runtime/testing/refusal.h"

namespace plumbline::partition {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class JointJson : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("plumbline_joint_json_test." + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  fs::path folder_;
};

// --- files that PyTorch wrote ----------------------------------------------------------------------------------------

TEST_F(JointJson, GraphsOfPyTorchAreWrittenAsTheyWereRead) {
  ASSERT_GE(golden_paths().size(), 8U);
  for (size_t i = 0; i < golden_paths().size(); ++i) {
    const Json original = Json::parse(read_text(golden_paths()[i]));
    const JointGraphFile& file = golden_files()[i];
    ASSERT_EQ(file.graphs.size(), original["graphs"].size());
    for (const auto& [id, graph] : file.graphs) {
      EXPECT_EQ(to_json(graph), original["graphs"][id]) << golden_paths()[i] << " " << id;
      for (const char* name : {"g.json", "g.json.gz"}) {
        write_joint_graph_file(path(name), file.model, graph, {0});
        const JointGraphFile again = read_joint_graph_file(path(name));
        EXPECT_EQ(to_json(again.graphs.at("g0")), original["graphs"][id]);
        EXPECT_EQ(again.model, file.model);
        EXPECT_EQ(again.variants.at("own/aten").params, std::vector<int>{0});
        EXPECT_TRUE(again.runs.empty());
      }
    }
  }
}

TEST_F(JointJson, RunsOfPyTorchAreReadInFull) {
  for (size_t i = 0; i < golden_paths().size(); ++i) {
    const Json original = Json::parse(read_text(golden_paths()[i]));
    const JointGraphFile& file = golden_files()[i];
    EXPECT_EQ(file.model, original["model"]);
    EXPECT_EQ(Json(file.torch), original["torch"]);
    EXPECT_EQ(file.runs.size(), original["runs"].size());
    for (const auto& [key, run] : file.runs) {
      const Json& recorded = original["runs"][key];
      EXPECT_EQ(run.variant + "/" + run.mode + "/static=" + run.statics, key);
      EXPECT_EQ(Json(run.saved), recorded["saved"]);
      EXPECT_EQ(Json(run.saved_symbols), recorded["saved_sym"]);
      EXPECT_EQ(Json(run.static_inputs), recorded["static_inputs"]);
      EXPECT_EQ(run.bytes, recorded["bytes"]);
      EXPECT_EQ(run.bytes_new_storage, recorded["bytes_new_storage"]);
      EXPECT_EQ(run.recomputed.size(), recorded["recomputed"].is_array() ? recorded["recomputed"].size()
                                                                         : recorded["recomputed"].get<size_t>());
      for (const auto& [part, name] : {std::pair(&run.forward, "fw"), std::pair(&run.backward, "bw")}) {
        EXPECT_EQ(Json(part->in), recorded[name]["in"]);
        EXPECT_EQ(Json(part->ops), recorded[name]["ops"]);
        EXPECT_EQ(part->added.size(), recorded[name].value("new", Json::array()).size());
        ASSERT_EQ(part->out.size(), recorded[name]["out"].size());
        for (size_t k = 0; k < part->out.size(); ++k)
          EXPECT_EQ(part->out[k] ? Json(*part->out[k]) : Json(nullptr), recorded[name]["out"][k]);
      }
      ASSERT_EQ(run.cuts.size(), recorded["cuts"].size());
      for (size_t k = 0; k < run.cuts.size(); ++k) EXPECT_EQ(Json(run.cuts[k].banned), recorded["cuts"][k]["banned"]);
      ASSERT_EQ(run.knapsack.has_value(), recorded.contains("knapsack"));
      if (run.knapsack) {
        EXPECT_EQ(Json(run.knapsack->memory), recorded["knapsack"]["memory"]);
      }
    }
  }
}

// --- files that a user writes ----------------------------------------------------------------------------------------

/// A graph with every kind of node, argument and result.
Json example_json() {
  return Json::parse(R"({
    "num_forward_outputs": 2, "storage_bytes": [48, 48, 8], "outputs": ["y", "n", null, "x"],
    "symbols": {"s0": {"hint": 3, "range": [2, "int_oo"]}, "s1": {"hint": 0, "range": ["-int_oo", 5]}},
    "nodes": [
      {"name": "x", "kind": "primal", "out": {"dtype": "float32", "shape": [{"sym": "s0", "hint": 3}, 4],
       "strides": [4, 1], "offset": {"sym": "2*s0", "hint": 6}, "bytes": 48, "storage": 0, "device": "cuda:0"},
       "free_symbols": ["s0"], "epilogue_mutation": true},
      {"name": "n", "kind": "primal", "out": {"scalar": "int", "sym": "s0", "hint": 3}, "binds": "s0"},
      {"name": "seed", "kind": "fwd_seed", "out": {"scalar": "int", "hint": 7}},
      {"name": "again", "kind": "bwd_seed", "out": {"scalar": "float", "sym": "f", "hint": 0.25}},
      {"name": "flag", "kind": "other", "out": {"scalar": "bool", "sym": "b", "hint": true}},
      {"name": "dy", "kind": "tangent", "out": null, "mark": "is_backward"},
      {"name": "c", "kind": "get_attr", "attr": "_tensor_constant0",
       "out": {"dtype": "int64", "shape": [], "strides": [], "bytes": 8, "storage": 2}},
      {"name": "s", "kind": "call", "op": "aten::split", "overload": "Tensor", "multi_output": true,
       "args": [{"node": "x"}, 2, true, null, 0.5, "text", [1, [{"node": "c"}]], {"float": "-inf"}, {"float": "inf"},
        {"complex": [1.0, {"float": "inf"}]}, {"slice": [null, {"node": "n"}, 2]}, {"other": "<what>"},
        {"sym": "s0 + 1", "hint": 4}],
       "kwargs": {"device": {"device": "cpu"}, "dtype": {"dtype": "float32"}, "layout": {"layout": "strided"},
        "memory_format": {"memory_format": "contiguous_format"}},
       "out": {"tuple": [{"dtype": "float32", "shape": [3, 4], "strides": [4, 1], "bytes": 48, "storage": 1}, null]},
       "tags": ["pointwise", "nondeterministic_seeded", "inplace_view", "data_dependent_output",
        "dynamic_output_shape", "core", "mutable", "view", "impure"],
       "recompute": "PREFER_CPU_OFFLOAD", "region": 3, "flops": 12.5, "memory_budget": 0.5, "no_vc_check": true,
       "backward_hook": true, "mark": "must_be_in_forward"},
      {"name": "y", "kind": "getitem", "op": "operator::getitem", "args": [{"node": "s"}, 0],
       "out": {"dtype": "float32", "shape": [3, 4], "strides": [4, 1], "bytes": 48, "storage": 1}, "aliases_input": "x"}
    ]})");
}

TEST_F(JointJson, EveryMemberSurvives) {
  const JointGraph graph = joint_graph_from_json(example_json(), "graph");
  EXPECT_EQ(to_json(graph), example_json());
  EXPECT_EQ(graph.symbols.at("s0").low, 2);
  EXPECT_EQ(graph.symbols.at("s0").high, std::nullopt);
  EXPECT_EQ(graph.nodes[7].recompute, CheckpointPolicy::PreferOffload);
  EXPECT_EQ(graph.nodes[7].flops, 12.5);
  EXPECT_EQ(graph.nodes[8].aliases_input, 0);

  Json nan = example_json();
  nan["nodes"][7]["args"] = {{{"float", "nan"}}};
  EXPECT_TRUE(std::isnan(joint_graph_from_json(nan, "graph").nodes[7].args[0].real));
  EXPECT_EQ(to_json(joint_graph_from_json(nan, "graph")), nan);
}

TEST_F(JointJson, RefusalsNameThePlaceAndWhatIsAccepted) {
  struct Case {
    const char* pointer;
    Json value;
    const char* says;
  };
  const std::vector<Case> cases = {
      {"/nodes/7/colour", 1, "graph: nodes[7]: expected an object with no other members than name, kind, "},
      {"/nodes/7/kind", "cal",
       "graph: nodes[7].kind: expected one of primal, tangent, fwd_seed, bwd_seed, other, call, getitem, get_attr, not "
       "\"cal\""},
      {"/nodes/7/mark", "",
       "graph: nodes[7].mark: expected one of is_forward, is_backward, must_be_in_forward, must_be_in_backward, not "
       "\"\""},
      {"/nodes/7/tags/0", "pure", "graph: nodes[7].tags[0]: expected one of pointwise, "},
      {"/nodes/7/recompute", "SAVE", "graph: nodes[7].recompute: expected one of MUST_SAVE, "},
      {"/nodes/7/region", -1, "graph: nodes[7].region: expected an integer from 0"},
      {"/nodes/7/flops", "many", "graph: nodes[7].flops: expected a number, not \"many\""},
      {"/nodes/7/op", 3, "graph: nodes[7].op: expected a string, not 3"},
      {"/nodes/7/args/0/node", "z", "graph: nodes[7].args[0].node: expected the name of a node, not \"z\""},
      {"/nodes/7/args/0/node", "y",
       "graph: nodes[7].args[0].node: expected the name of a node that comes before this one, not \"y\""},
      {"/nodes/7/args/0", Json::object(), "graph: nodes[7].args[0]: expected an argument: null, true, a number, "},
      {"/nodes/7/args/0", {{"node", "x"}, {"dtype", "float32"}}, "graph: nodes[7].args[0]: expected an argument: "},
      {"/nodes/7/kwargs/dtype/dtype", "float31",
       "graph: nodes[7].kwargs.dtype.dtype: expected one of float32, float64, "},
      {"/nodes/7/kwargs/layout/layout", "dense",
       "graph: nodes[7].kwargs.layout.layout: expected one of strided, sparse_coo, "},
      {"/nodes/7/kwargs/memory_format/memory_format", "nhwc",
       "graph: nodes[7].kwargs.memory_format.memory_format: expected one of contiguous_format, "},
      {"/nodes/7/kwargs/device/device", "gpu",
       "graph: nodes[7].kwargs.device.device: expected a device such as \"cpu\" or \"cuda:0\", not \"gpu\""},
      {"/nodes/8/out/dtype", "int", "graph: nodes[8].out.dtype: expected one of float32, "},
      {"/nodes/7/args/1", 18446744073709551615U,
       "graph: nodes[7].args[1]: expected an integer, not 18446744073709551615"},
      {"/nodes/7/args/7/float", "Infinity",
       "graph: nodes[7].args[7].float: expected one of inf, -inf, nan, not \"Infinity\""},
      {"/nodes/7/args/10/slice", {1, 2}, "graph: nodes[7].args[10].slice: expected a list of 3, not [1,2]"},
      {"/nodes/7/kwargs", {1}, "graph: nodes[7].kwargs: expected an object, not [1]"},
      {"/nodes/7/multi_output", 1, "graph: nodes[7].multi_output: expected true or false, not 1"},
      {"/nodes/7/multi_output", false, "graph: node 'y' takes a result of 's', which is no call of several results"},
      {"/nodes/8/op", "aten::relu", "graph: nodes[8].op: expected \"operator::getitem\", not \"aten::relu\""},
      {"/nodes/8/aliases_input", "z", "graph: nodes[8].aliases_input: expected the name of a node, not \"z\""},
      {"/nodes/8/out/bytes", -1, "graph: nodes[8].out.bytes: expected an integer from 0"},
      {"/nodes/8/out/shape/0", 2.5, "graph: nodes[8].out.shape[0]: expected an integer, not 2.5"},
      {"/nodes/8/out/storage", 3, "graph: node 'y' lies in storage 3, expected one of the 3 of the graph, or -1"},
      {"/nodes/8/name", "x", "graph: nodes[8].name: expected a name that no other node has, not \"x\""},
      {"/nodes/6/args", Json::array(), "graph: nodes[6].args: expected no arguments, as this node is no call, not []"},
      {"/nodes/0/out/shape/0", {{"sym", "s0"}}, "graph: nodes[0].out.shape[0]: expected an object with \"hint\""},
      {"/outputs/0", "z", "graph: outputs[0]: expected the name of a node, not \"z\""},
      {"/num_forward_outputs", 5, "graph: num_forward_outputs: expected an integer from 0 to 4, not 5"},
      {"/symbols/s0/range", 3, "graph: symbols.s0.range: expected a list of 2, not 3"},
      {"/nodes", "none", "graph: nodes: expected a list, not \"none\""}};
  for (const Case& one : cases) {
    Json graph = example_json();
    graph[Json::json_pointer(one.pointer)] = one.value;
    const std::string error = testing::refusal([&] { joint_graph_from_json(graph, "graph"); });
    EXPECT_TRUE(error.starts_with(one.says)) << one.pointer << "\n  says: " << error << "\n  not:  " << one.says;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
  for (const char* needed : {"nodes", "outputs", "num_forward_outputs"}) {
    Json graph = example_json();
    graph.erase(needed);
    testing::expect_part(testing::refusal([&] { joint_graph_from_json(graph, "graph"); }),
                         std::string("with \"") + needed + "\"");
  }
}

TEST_F(JointJson, AFileOfOnesOwnNeedsGraphsAndVariants) {
  const Json least = {{"format", "plumbline-joint-graph/1"},
                      {"graphs", {{"g", example_json()}}},
                      {"variants", {{"own/aten", {{"graph", "g"}}}}}};
  const auto error_of = [&](const char* pointer, const Json& value) {
    Json file = least;
    file[Json::json_pointer(pointer)] = value;
    write_text(path("f.json"), file.dump());
    std::string text = testing::refusal([&] { read_joint_graph_file(path("f.json")); });
    return text.starts_with(path("f.json") + ": ") ? text.substr(path("f.json").size() + 2) : text;
  };
  EXPECT_EQ(error_of("/model", "own"), "accepted");
  EXPECT_EQ(error_of("/modle", "own").substr(0, 60), "expected an object with no other members than format, model,");
  EXPECT_EQ(error_of("/format", "plumbline-joint-graph/2"),
            "format: expected \"plumbline-joint-graph/1\", not \"plumbline-joint-graph/2\"");
  EXPECT_EQ(error_of("/variants/own~1aten/graph", "h"),
            "variants.own/aten.graph: expected one of the graphs: g, not \"h\"");
  EXPECT_EQ(error_of("/variants/own~1aten/params", {2}),
            "variants.own/aten.params[0]: expected an integer from 0 to 1, not 2");
  EXPECT_EQ(error_of("/variants", Json::object()),
            "variants: expected a variant, such as {\"own/aten\": {\"graph\": \"g0\"}}, not {}");
  EXPECT_EQ(error_of("/runs/own~1aten~1min_cut", Json::object()),
            "runs.own/aten/min_cut: the name of a run must be VARIANT/MODE/static=none|params");
  EXPECT_EQ(error_of("/runs/your~1aten~1min_cut~1static=none", Json::object()),
            "runs.your/aten/min_cut/static=none: is a run of the variant 'your/aten', which the file lacks");
  EXPECT_EQ(error_of("/runs/own~1aten~1min-cut~1static=none", Json::object()).substr(0, 84),
            "runs.own/aten/min-cut/static=none: has the mode 'min-cut', expected one of default, ");
  EXPECT_EQ(error_of("/runs/own~1aten~1min_cut~1static=all", Json::object()),
            "runs.own/aten/min_cut/static=all: has static=all, expected none or params");
  EXPECT_EQ(error_of("/runs/own~1aten~1min_cut~1static=none", {{"error", "AssertionError"}}), "accepted");
  EXPECT_EQ(error_of("/runs/own~1aten~1min_cut~1static=none", Json::object()),
            "runs.own/aten/min_cut/static=none: expected an object with \"saved\", not {}");

  write_text(path("f.json"), "{\"format\": ");
  testing::expect_part(testing::refusal([&] { read_joint_graph_file(path("f.json")); }),
                       path("f.json") + " is not JSON: ");
}

}  // namespace
}  // namespace plumbline::partition
