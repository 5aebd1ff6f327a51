#include "runtime/capture/pt2/testing/archives.h"

#include <caffe2/serialize/inline_container.h>

#include <algorithm>
#include <functional>

#include "runtime/capture/pt2/testdata_path.h"
#include "runtime/error.h"

namespace plumbline::capture::pt2 {

using nlohmann::json;
using nlohmann::ordered_json;

std::filesystem::path testdata(const std::string& name) { return std::filesystem::path(PLUMBLINE_PT2_TESTDATA) / name; }

Entries entries_of(const std::filesystem::path& archive) {
  caffe2::serialize::PyTorchStreamReader reader(archive.string());
  Entries entries;
  for (const std::string& name : reader.getAllRecords()) {
    if (name.starts_with(".data/")) continue;  // the writer creates its own
    const auto [bytes, count] = reader.getRecord(name);
    entries[name].assign(static_cast<const char*>(bytes.get()), count);
  }
  return entries;
}

std::filesystem::path write_archive(const TemporaryFolder& folder, const Entries& entries, const std::string& name) {
  const std::filesystem::path path = folder / name;
  caffe2::serialize::PyTorchStreamWriter writer(path.string());
  for (const auto& [entry, bytes] : entries) writer.writeRecord(entry, bytes.data(), bytes.size());
  writer.writeEndOfFile();
  return path;
}

std::string refusal_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    const std::string text = error.what();
    PLUMBLINE_CHECK(text.find('\n') == std::string::npos, text);
    return text;
  }
  return "nothing was thrown";
}

Entries program_of(const std::string& nodes, const std::string& outputs) {
  const auto parse = [](std::string text) {
    std::replace(text.begin(), text.end(), '\'', '"');
    return ordered_json::parse(text);
  };
  const ordered_json size2 = {{"as_int", 2}}, size3 = {{"as_int", 3}};
  const ordered_json meta = {{"dtype", 7}, {"sizes", {size2, size3}}, {"requires_grad", false}};
  ordered_json graph = {{"inputs", {{{"as_tensor", {{"name", "x"}}}}}}, {"tensor_values", {{"x", meta}}}};
  ordered_json specs = ordered_json::array();
  for (const ordered_json& output : parse(outputs)) specs.push_back({{"user_output", {{"arg", output}}}});
  graph["nodes"] = ordered_json::array();
  for (const ordered_json& node : parse(nodes)) {
    ordered_json inputs = ordered_json::array();
    for (const auto& [name, argument] : node[2].items())
      inputs.push_back({{"name", name}, {"arg", argument}, {"kind", 1}});
    graph["nodes"].push_back({{"target", node[0]},
                              {"name", node[1]},
                              {"inputs", inputs},
                              {"outputs", node[3]},
                              {"metadata", {{"nn_module_stack", node.size() > 4 ? node[4] : ordered_json("")}}}});
  }
  const std::string leaf = R"({"type": null, "context": null, "children_spec": []})";
  const std::string in_spec = R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [)"
                              R"({"type": "builtins.tuple", "context": "null", "children_spec": [)" +
                              leaf + R"(]}, {"type": "builtins.dict", "context": "[]", "children_spec": []}]}])";
  const ordered_json model = {
      {"graph_module",
       {{"graph", graph},
        {"signature",
         {{"input_specs", {{{"user_input", {{"arg", {{"as_tensor", {{"name", "x"}}}}}}}}}}, {"output_specs", specs}}},
        {"module_call_graph",
         {{{"fqn", ""}, {"signature", {{"in_spec", in_spec}, {"out_spec", "[1, " + leaf + "]"}}}}}}}},
      {"schema_version", {{"major", 8}, {"minor", 20}}},
      {"torch_version", "2.15.0"}};
  return {{"models/model.json", model.dump()}};
}

}  // namespace plumbline::capture::pt2
