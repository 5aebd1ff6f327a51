#include "runtime/capture/pt2/program.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>

#include "runtime/capture/annotate.h"
#include "runtime/capture/pt2/testing/archives.h"
#include "runtime/error.h"
#include "runtime/graph/run/program.h"
#include "runtime/io/tensor_file.h"
#include "runtime/testing/parameter_name.h"

namespace plumbline::capture::pt2 {
namespace {

using nlohmann::json;
using Tensors = std::vector<at::Tensor>;

at::Tensor tensor_of(const HostTensor& host) {
  static const std::map<std::string, at::ScalarType> types = {
      {"F32", at::kFloat}, {"BF16", at::kBFloat16}, {"I64", at::kLong}, {"BOOL", at::kBool}};
  at::Tensor tensor = at::empty(host.shape, at::TensorOptions(types.at(host.dtype)));
  std::memcpy(tensor.data_ptr(), host.data.data(), host.data.size());
  return tensor;
}

/// Part `m` of `count` along dimension 0; an input of the program's own size is shared by all parts.
at::Tensor part(const at::Tensor& whole, int64_t rows, int m) {
  return whole.dim() == 0 || whole.size(0) == rows ? whole : whole.narrow(0, m * rows, rows).clone();
}

void flatten(const graph::OutputTree& tree, std::vector<const graph::OutputTree*>& leaves) {
  if (tree.kind == graph::OutputTree::Kind::Value || tree.kind == graph::OutputTree::Kind::Constant)
    leaves.push_back(&tree);
  for (const graph::OutputTree& item : tree.items) flatten(item, leaves);
}

/// Runs every micro-batch through the loaded program; returns everything that PyTorch stored, under the stored names.
std::map<std::string, at::Tensor> results_of(capture::ExportedProgram& program, const TensorMap& inputs,
                                             int microbatches) {
  std::map<std::string, at::Tensor> results, buffers;
  for (const graph::Attribute& attribute : program.graph.attributes) buffers[attribute.name] = attribute.tensor.clone();
  std::vector<const graph::OutputTree*> leaves;
  flatten(program.output_tree, leaves);
  const graph::Program executable(program.graph);
  for (int m = 0; m < microbatches; ++m) {
    Tensors arguments, outputs;
    for (const graph::GraphInput& input : program.graph.inputs) {
      const std::vector<int64_t>& sizes = program.graph.values[input.value].sizes;
      arguments.push_back(part(tensor_of(inputs.at(input.name)), sizes.empty() ? 0 : sizes[0], m));
    }
    executable.run(arguments, outputs);
    for (size_t i = 0; i < leaves.size(); ++i)
      if (leaves[i]->kind == graph::OutputTree::Kind::Value && outputs[leaves[i]->output].defined())
        results["output." + std::to_string(m) + "." + std::to_string(i)] = outputs[leaves[i]->output].detach();
    const at::Tensor target =
        inputs.contains("TARGET") ? part(tensor_of(inputs.at("TARGET")), outputs[0].size(0), m) : at::Tensor();
    // The loss of number_first is its output 1, already a sum; output 0 is a constant.
    const at::Tensor& compared = outputs[0].defined() ? outputs[0] : outputs[1];
    const at::Tensor loss = target.defined() ? at::mse_loss(compared, target) : compared.sum();
    results["loss." + std::to_string(m)] = loss.detach();
    loss.backward();
  }
  for (const graph::Attribute& attribute : program.graph.attributes) {
    if (attribute.tensor.grad().defined())
      results["grad." + attribute.name] = attribute.tensor.grad() / microbatches;
    else if (!at::equal(attribute.tensor, buffers[attribute.name]))
      results["buffer." + attribute.name] = attribute.tensor;
  }
  return results;
}

class ProgramOfPyTorch : public ::testing::TestWithParam<const char*> {};

// The oracle is PyTorch itself, which ran the same archive. All numbers are exact, so the results are equal bitwise.
TEST_P(ProgramOfPyTorch, RunsAsItDidThere) {
  capture::ExportedProgram program = capture::read_program(testdata(GetParam()) / "model.pt2");
  const TensorMap inputs = read_tensor_file(testdata(GetParam()) / "inputs.safetensors");
  const TensorMap expected = read_tensor_file(testdata(GetParam()) / "expected.safetensors");
  ASSERT_EQ(program.sample_inputs.size(), program.graph.inputs.size()) << program.sample_inputs_error;
  for (size_t i = 0; i < program.sample_inputs.size(); ++i) {
    const at::Tensor& sample = program.sample_inputs[i];
    const at::Tensor first =
        part(tensor_of(inputs.at(program.graph.inputs[i].name)), sample.dim() ? sample.size(0) : 0, 0);
    EXPECT_TRUE(at::equal(sample, first)) << program.graph.inputs[i].name;
  }
  capture::annotate(program.graph, program.sample_inputs);
  graph::verify(program.graph);
  std::map<std::string, at::Tensor> results = results_of(program, inputs, 4);
  for (const auto& [name, host] : expected) {
    ASSERT_TRUE(results.contains(name)) << name;
    const at::Tensor want = tensor_of(host), got = results[name];
    EXPECT_EQ(got.scalar_type(), want.scalar_type()) << name;
    EXPECT_TRUE(at::equal(got, want)) << name;
  }
  for (const auto& [name, tensor] : results) EXPECT_TRUE(expected.contains(name)) << name;
}

INSTANTIATE_TEST_SUITE_P(Testdata, ProgramOfPyTorch,
                         ::testing::Values("tied", "markers", "no_grad", "no_grad-211", "cond", "in_place",
                                           "in_place-211", "nonzero", "keywords", "autocast", "twice", "embedding",
                                           "number_first", "dynamic"),
                         testing::ParameterName());

const graph::Attribute& attribute(const capture::ExportedProgram& program, const std::string& name) {
  for (const graph::Attribute& attribute : program.graph.attributes)
    if (attribute.name == name) return attribute;
  throw Error("no attribute " + name);
}

std::vector<std::string> calls(const graph::Graph& graph) {
  std::vector<std::string> out;
  for (const graph::ModuleCall& call : graph.module_calls)
    out.push_back(call.name + " " + std::to_string(call.begin) + " " + std::to_string(call.end));
  return out;
}

TEST(Program, TiedWeightsAreOneAttributeUnderTheirFirstName) {
  const capture::ExportedProgram program = capture::read_program(testdata("tied") / "model.pt2");
  EXPECT_EQ(program.graph.attributes.size(), 6U);
  const graph::Attribute& tied = attribute(program, "first.weight");
  EXPECT_EQ(tied.aliases, std::vector<std::string>{"head.weight"});
  EXPECT_EQ(program.graph.nodes.front().arguments[1].values[0], tied.value);
  EXPECT_EQ(program.graph.nodes.back().arguments[1].values[0], tied.value);
  EXPECT_EQ(attribute(program, "unused").value, graph::kNoValue);
  EXPECT_EQ(attribute(program, "scale").kind, graph::AttributeKind::Buffer);
  EXPECT_FALSE(attribute(program, "scale").persistent);
}

TEST(Program, FrozenParametersStayFrozen) {
  Entries entries = entries_of(testdata("tied") / "model.pt2");
  std::string& text = entries["data/weights/model_weights_config.json"];
  json list = json::parse(text);
  list["config"]["middle.bias"]["tensor_meta"]["requires_grad"] = false;
  text = list.dump();
  const TemporaryFolder folder;
  const capture::ExportedProgram program = capture::read_program(write_archive(folder, entries));
  EXPECT_FALSE(attribute(program, "middle.bias").tensor.requires_grad());
  EXPECT_TRUE(attribute(program, "middle.weight").tensor.requires_grad());
}

TEST(Program, ViewsOfOneStorageStayViews) {
  Entries entries = entries_of(testdata("tied") / "model.pt2");
  std::string& text = entries["data/weights/model_weights_config.json"];
  json list = json::parse(text);
  json& config = list["config"];
  config["unused"]["path_name"] = config["first.weight"]["path_name"];  // f32[2] in f32[4,4]
  config["unused"]["tensor_meta"]["storage_offset"]["as_int"] = 14;
  text = list.dump();
  const TemporaryFolder folder;
  const capture::ExportedProgram program = capture::read_program(write_archive(folder, entries));
  const at::Tensor part = attribute(program, "unused").tensor, whole = attribute(program, "first.weight").tensor;
  EXPECT_TRUE(part.storage().is_alias_of(whole.storage()));
  EXPECT_TRUE(at::equal(part, whole.reshape(-1).narrow(0, 14, 2)));
  config["unused"]["tensor_meta"]["storage_offset"]["as_int"] = 15;
  text = list.dump();
  EXPECT_NE(
      refusal_of([&] { capture::read_program(write_archive(folder, entries)); }).find("tensor 'unused' needs 68 bytes"),
      std::string::npos);
}

TEST(Program, SplitMarkersStandWhereForwardHadThem) {
  const capture::ExportedProgram program = capture::read_program(testdata("markers") / "model.pt2");
  std::string kinds;
  for (const graph::Node& node : program.graph.nodes) kinds += node.is_split() ? "|" : "o";
  EXPECT_EQ(kinds, "o|oo|oo");
}

TEST(Program, KeywordInputsAndConstantsInBothDirections) {
  const capture::ExportedProgram program = capture::read_program(testdata("keywords") / "model.pt2");
  std::vector<std::string> names;
  for (const graph::GraphInput& input : program.graph.inputs) names.push_back(input.name);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "mask", "pair_b", "pair_a", "left"}));
  const graph::OutputTree& tree = program.output_tree;
  ASSERT_EQ(tree.kind, graph::OutputTree::Kind::Dict);
  EXPECT_EQ(tree.keys, (std::vector<std::string>{"result", "others"}));
  EXPECT_EQ(tree.items[0].output, 0);
  const graph::OutputTree& others = tree.items[1];
  ASSERT_EQ(others.kind, graph::OutputTree::Kind::Tuple);
  EXPECT_EQ(others.items[0].output, 1);
  EXPECT_EQ(others.items[1].output, 2);
  EXPECT_EQ(program.graph.outputs[2], graph::kNoValue);
  EXPECT_EQ(others.items[2].kind, graph::OutputTree::Kind::Constant);
  EXPECT_EQ(others.items[2].constant, "7");
  ASSERT_EQ(program.graph.outputs.size(), 4U);
  EXPECT_EQ(program.graph.outputs[3], graph::kNoValue) << "a constant keeps its number";
}

TEST(Program, ConstantInputsAreConstants) {
  Entries entries = entries_of(testdata("keywords") / "model.pt2");
  const json model = json::parse(entries["models/model.json"]);
  const TemporaryFolder folder;
  const auto with = [&](const char* value) {
    json changed = model;
    for (json& spec : changed["graph_module"]["signature"]["input_specs"])
      if (spec.contains("constant_input")) spec["constant_input"]["value"] = json::parse(value);
    entries["models/model.json"] = changed.dump();
    return refusal_of([&] { capture::read_program(write_archive(folder, entries)); });
  };
  const std::string path = (folder / "model.pt2").string();
  EXPECT_EQ(with(R"({"as_tensor": {"name": "x"}})"),
            path + ": a constant input names the value 'x'; expected a constant");
  const std::string device = with(R"({"as_device": {"type": "moon", "index": null}})");
  EXPECT_TRUE(device.starts_with(path + ": ")) << device;
  EXPECT_NE(device.find("moon"), std::string::npos) << device;
}

TEST(Program, ModulesCalledAgainMakeCallsOfTheirOwn) {
  EXPECT_EQ(calls(capture::read_program(testdata("twice") / "model.pt2").graph),
            (std::vector<std::string>{"shared 0 2", "shared.fc 0 1", "between 2 4", "between.fc 2 3", "shared 4 6",
                                      "shared.fc 4 5", "last 6 7"}));
}

TEST(Program, RegionsWithoutGradientsAreModesOfTheirNodes) {
  for (const char* name : {"no_grad", "no_grad-211"}) {
    const capture::ExportedProgram program = capture::read_program(testdata(name) / "model.pt2");
    std::string modes;
    for (const graph::Node& node : program.graph.nodes) modes += node.grad_enabled ? "g" : "-";
    EXPECT_EQ(modes, "g---g-gg");  // linear | linear, sum, add_ | relu | mul | linear, add
    EXPECT_EQ(calls(program.graph), (std::vector<std::string>{"first 0 1", "teacher 1 2", "second 6 7"}));
  }
}

TEST(Program, AutocastRegionsNest) {
  const graph::Graph graph = capture::read_program(testdata("autocast") / "model.pt2").graph;
  ASSERT_EQ(graph.autocast.size(), 2U);
  EXPECT_EQ(graph.autocast[0], (graph::AutocastRegion{c10::kCPU, at::kBFloat16, true, false, -1}));
  EXPECT_EQ(graph.autocast[1].outer, 0);
  EXPECT_FALSE(graph.autocast[1].enabled);
  EXPECT_EQ(graph.nodes.front().autocast, 0);
  EXPECT_EQ(graph.nodes.back().autocast, 0);
  EXPECT_TRUE(
      std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const graph::Node& n) { return n.autocast == 1; }));
}

TEST(Program, CondIsOneNodeWithTwoBranches) {
  capture::ExportedProgram program = capture::read_program(testdata("cond") / "model.pt2");
  capture::annotate(program.graph, program.sample_inputs);
  std::vector<size_t> results;
  for (const graph::Node& node : program.graph.nodes) {
    if (node.branches.empty()) continue;
    ASSERT_EQ(node.branches.size(), 2U);
    results.push_back(node.results[0].values.size());
    for (graph::ValueId v : node.results[0].values) {
      EXPECT_EQ(program.graph.values[v].sizes, (std::vector<int64_t>{4, 4}));
      EXPECT_TRUE(program.graph.values[v].requires_grad);
    }
    for (const auto& branch : node.branches) EXPECT_EQ(branch->inputs.size(), node.arguments[1].values.size());
  }
  EXPECT_EQ(results, (std::vector<size_t>{1, 2}));
}

TEST(Program, WritesShareTheMemoryThatTheyChange) {
  capture::ExportedProgram program = capture::read_program(testdata("in_place") / "model.pt2");
  capture::annotate(program.graph, program.sample_inputs);
  const graph::Graph& graph = program.graph;
  // fill_ on a view of the first linear's result, whose base is read later.
  for (const graph::Node& node : graph.nodes) {
    if (node.op->schema().name() == "aten::fill_" || node.op->schema().name() == "aten::masked_fill_") {
      EXPECT_EQ(graph.values[node.results[0].values[0]].storage,
                graph.values[graph.nodes[1].results[0].values[0]].storage);
    }
  }
  EXPECT_EQ(graph.values[graph.nodes[0].results[0].values[0]].storage,
            graph.values[attribute(program, "calls").value].storage);
}

TEST(Program, SymbolicSizesAreThoseOfTheSample) {
  const capture::ExportedProgram program = capture::read_program(testdata("dynamic") / "model.pt2");
  EXPECT_EQ(program.graph.values[program.graph.inputs[0].value].sizes, (std::vector<int64_t>{4, 4}));
  Entries entries = entries_of(testdata("dynamic") / "model.pt2");
  entries.erase("data/sample_inputs/model.pt");
  const TemporaryFolder folder;
  EXPECT_NE(refusal_of([&] {
              capture::read_program(write_archive(folder, entries));
            }).find("dimension 0 of input 'x' is symbolic, and there is no sample input"),
            std::string::npos);
}

TEST(Program, AnOperatorThatOnlyPythonHasIsRefusedByName) {
  const std::string text = refusal_of([] { capture::read_program(testdata("custom") / "model.pt2"); });
  EXPECT_NE(text.find("node 'twofold' (torch.ops.plumbline_testdata.twofold.default)"), std::string::npos) << text;
}

TEST(Program, VersionsAreToldAndAnUnknownOneIsRefused) {
  EXPECT_EQ(capture::read_program(testdata("in_place-211") / "model.pt2").schema_version, "8.17");
  const capture::ExportedProgram program = capture::read_program(testdata("in_place") / "model.pt2");
  EXPECT_EQ(program.schema_version, "8.20");
  EXPECT_TRUE(program.torch_version.starts_with("2.15"));
  Entries entries = entries_of(testdata("tied") / "model.pt2");
  json model = json::parse(entries["models/model.json"]);
  model["schema_version"]["major"] = 9;
  entries["models/model.json"] = model.dump();
  const TemporaryFolder folder;
  EXPECT_NE(refusal_of([&] { capture::read_program(write_archive(folder, entries)); }).find("schema version 9.20"),
            std::string::npos);
}

TEST(Program, WithoutReadableSamplesItSaysWhy) {
  Entries entries = entries_of(testdata("tied") / "model.pt2");
  entries["data/sample_inputs/model.pt"] = "no pickle";
  const TemporaryFolder folder;
  const capture::ExportedProgram broken = capture::read_program(write_archive(folder, entries));
  EXPECT_TRUE(broken.sample_inputs.empty());
  EXPECT_NE(broken.sample_inputs_error.find("cannot be read"), std::string::npos) << broken.sample_inputs_error;
  entries.erase("data/sample_inputs/model.pt");
  const capture::ExportedProgram none = capture::read_program(write_archive(folder, entries, "other.pt2"));
  EXPECT_NE(none.sample_inputs_error.find("no entry"), std::string::npos);
}

/// The program "tied" after `change` of what torch.save() wrote of its sample input, f32[4,4]: "data.pkl" and "data/0".
capture::ExportedProgram with_sample(const std::function<void(Entries&)>& change) {
  const TemporaryFolder folder;
  Entries entries = entries_of(testdata("tied") / "model.pt2");
  std::string& bytes = entries["data/sample_inputs/model.pt"];
  std::ofstream(folder / "sample.pt", std::ios::binary) << bytes;
  Entries sample = entries_of(folder / "sample.pt");
  sample.erase("version");  // the writer creates its own
  change(sample);
  std::ifstream file(write_archive(folder, sample, "changed.pt"), std::ios::binary);
  bytes = std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  return capture::read_program(write_archive(folder, entries));
}

void replace(std::string& text, const std::string& part, const std::string& by) {
  text.replace(text.find(part), part.size(), by);
}

TEST(Program, ASampleOfAnotherDeviceIsReadOnTheCpu) {
  const capture::ExportedProgram moved = with_sample([](Entries& sample) {
    // A text of pickle: X, its length in four bytes, its bytes.
    replace(sample["data.pkl"], std::string("X\x03\0\0\0cpu", 8), std::string("X\x06\0\0\0cuda:0", 11));
  });
  ASSERT_EQ(moved.sample_inputs.size(), 1U) << moved.sample_inputs_error;
  EXPECT_TRUE(moved.sample_inputs[0].is_cpu());
  const capture::ExportedProgram plain = capture::read_program(testdata("tied") / "model.pt2");
  EXPECT_TRUE(at::equal(moved.sample_inputs[0], plain.sample_inputs.at(0)));
}

}  // namespace
}  // namespace plumbline::capture::pt2
