#include "runtime/partition/parity/joint_graph_file.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_set>

#include "runtime/error.h"
#include "runtime/io/gzip.h"
#include "runtime/partition/joint/json/joint_json.h"
#include "runtime/text/join.h"

namespace plumbline::partition {
namespace {

using Json = nlohmann::json;

constexpr const char* kJointGraphFormat = "plumbline-joint-graph/1";
constexpr std::array modes = {"default",    "min_cut",     "aggressive", "budget=0",
                              "budget=0.1", "budget=0.25", "budget=0.5", "budget=0.75"};
constexpr int most = std::numeric_limits<int>::max();

std::vector<std::string> texts_at(const JsonPlace& place, const char* key) {
  const auto found = place.find(key);
  return found ? found->texts() : std::vector<std::string>();
}

std::string text_at(const JsonPlace& place, const char* key) {
  const auto found = place.find(key);
  return found ? found->text() : std::string();
}

std::vector<double> numbers(const JsonPlace& place) {
  std::vector<double> all;
  for (const JsonPlace& item : place.items()) all.push_back(item.number());
  return all;
}

std::vector<int> positions(const JsonPlace& place) {
  std::vector<int> all;
  for (const JsonPlace& item : place.items()) all.push_back(item.small(0, most));
  return all;
}

/// Reads indices among the primals of the graph.
std::vector<int> primals_at(const JsonPlace& place, const JointGraph& graph) {
  int primals = 0;
  for (const JointNode& node : graph.nodes) primals += node.kind == JointKind::Primal;
  std::vector<int> all;
  for (const JsonPlace& item : place.items()) {
    if (primals == 0) item.fail("no index, as the graph has no primal");
    all.push_back(item.small(0, primals - 1));
  }
  return all;
}

JointGraphFile::Variant read_variant(const JsonPlace& place, const JointGraphFile& file) {
  place.expect_only({"torch", "decompositions", "graph", "params", "params_rule", "after_cse", "op_class"});
  JointGraphFile::Variant variant;
  variant.torch = text_at(place, "torch");
  variant.decompositions = text_at(place, "decompositions");
  variant.graph = place["graph"].text();
  const auto graph = file.graphs.find(variant.graph);
  if (graph == file.graphs.end()) {
    std::vector<std::string_view> known;
    for (const auto& [id, unused] : file.graphs) known.push_back(id);
    place["graph"].fail("one of the graphs: " + join(known));
  }
  variant.nodes_left = static_cast<int>(graph->second.nodes.size());
  if (const auto params = place.find("params")) variant.params = primals_at(*params, graph->second);
  if (const auto rule = place.find("params_rule")) rule->text();
  if (const auto after = place.find("after_cse")) {
    after->expect_only({"dce_removed", "cse_merged", "nodes_left"});
    variant.dce_removed = (*after)["dce_removed"].texts();
    for (const auto& [duplicate, kept] : (*after)["cse_merged"].members())
      variant.cse_merged.emplace(duplicate, kept.text());
    variant.nodes_left = (*after)["nodes_left"].small(0, most);
  }
  if (const auto classes = place.find("op_class"))
    for (const auto& [op, list] : classes->members()) variant.op_class.emplace(op, list.texts());
  return variant;
}

JointGraphFile::Part read_part(const JsonPlace& place) {
  place.expect_only({"in", "ops", "out", "new"});
  JointGraphFile::Part part{place["in"].texts(), place["ops"].texts(), {}, {}};
  for (const JsonPlace& out : place["out"].items())
    part.out.push_back(out.is_null() ? std::nullopt : std::optional(out.text()));
  if (const auto added = place.find("new"))
    for (const JsonPlace& node : added->items()) {
      node.expect_only({"name", "target"});
      part.added.emplace(node["name"].text(), node["target"].text());
    }
  return part;
}

JointGraphFile::Cut read_cut(const JsonPlace& place) {
  place.expect_only({"bans", "dont_ban", "saved", "banned"});
  return {place["bans"].texts(), place["dont_ban"].texts(), place["saved"].texts(), place["banned"].texts()};
}

JointGraphFile::Knapsack read_knapsack(const JsonPlace& place) {
  place.expect_only({"nodes", "memory", "runtime", "capacity", "value", "save", "recompute"});
  return {.nodes = place["nodes"].texts(),
          .memory = numbers(place["memory"]),
          .runtime = numbers(place["runtime"]),
          .capacity = place["capacity"].number(),
          .value = place["value"].number(),
          .save = positions(place["save"]),
          .recompute = positions(place["recompute"])};
}

/// The names in both lists, in the order of the second.
std::vector<std::string> common(const std::vector<std::string>& one, const std::vector<std::string>& other) {
  const std::unordered_set<std::string_view> names(one.begin(), one.end());
  std::vector<std::string> both;
  for (const std::string& name : other)
    if (names.contains(name)) both.push_back(name);
  return both;
}

void read_answer(const JsonPlace& place, JointGraphFile::Run& run) {
  run.saved = place["saved"].texts();
  run.saved_symbols = texts_at(place, "saved_sym");
  if (const auto bytes = place.find("bytes")) run.bytes = bytes->integer(0);
  if (const auto bytes = place.find("bytes_new_storage")) run.bytes_new_storage = bytes->integer(0);
  run.forward = read_part(place["fw"]);
  run.backward = read_part(place["bw"]);
  run.recomputed = common(run.forward.ops, run.backward.ops);
  if (const auto member = place.find("recomputed")) {  // their number, or their names in any order
    std::vector<std::string> names = run.recomputed;
    std::ranges::sort(names);
    std::vector<std::string> recorded = member->json().is_array() ? member->texts() : names;
    std::ranges::sort(recorded);
    if (member->json().is_array() ? recorded != names : member->json() != names.size())
      member->fail("the names in both fw.ops and bw.ops, or their number, " + std::to_string(names.size()));
  }
}

JointGraphFile::Run read_run(const std::string& key, const JsonPlace& place, const JointGraphFile& file) {
  place.expect_only({"partitioner", "config", "static_inputs", "saved", "saved_sym", "bytes", "bytes_new_storage", "fw",
                     "bw", "recomputed", "cuts", "knapsack", "error", "message"});
  JointGraphFile::Run run;
  const size_t statics = key.rfind("/static=");
  const size_t mode = statics == std::string::npos || statics == 0 ? std::string::npos : key.rfind('/', statics - 1);
  if (mode == std::string::npos) place.refuse("the name of a run must be VARIANT/MODE/static=none|params");
  run.variant = key.substr(0, mode);
  run.mode = key.substr(mode + 1, statics - mode - 1);
  run.statics = key.substr(statics + std::string_view("/static=").size());
  const auto variant = file.variants.find(run.variant);
  if (variant == file.variants.end())
    place.refuse("is a run of the variant '" + run.variant + "', which the file lacks");
  if (std::ranges::find(modes, run.mode) == modes.end() && !run.mode.starts_with("budget="))
    place.refuse("has the mode '" + run.mode + "', expected one of " + join(modes));
  if (run.statics != "none" && run.statics != "params")
    place.refuse("has static=" + run.statics + ", expected none or params");
  if (const auto inputs = place.find("static_inputs"))
    run.static_inputs = primals_at(*inputs, file.graphs.at(variant->second.graph));
  if (const auto config = place.find("config"); config && !config->json().is_object()) config->fail("an object");
  if (const auto partitioner = place.find("partitioner")) partitioner->text();
  if (const auto error = place.find("error")) {
    run.error = error->text();
  } else {
    read_answer(place, run);
  }
  if (const auto cuts = place.find("cuts"))
    for (const JsonPlace& cut : cuts->items()) run.cuts.push_back(read_cut(cut));
  if (const auto knapsack = place.find("knapsack")) run.knapsack = read_knapsack(*knapsack);
  return run;
}

}  // namespace

JointGraphFile read_joint_graph_file(const std::string& path) {
  const Json json = parse_json(read_text(path), path);
  const JsonPlace place(json, path);
  place.expect_only({"format", "model", "about", "torch", "graphs", "variants", "runs"});
  if (place["format"].json() != kJointGraphFormat) place["format"].fail("\"" + std::string(kJointGraphFormat) + "\"");
  JointGraphFile file;
  file.model = text_at(place, "model");
  file.about = text_at(place, "about");
  file.torch = texts_at(place, "torch");
  for (const auto& [id, graph] : place["graphs"].members()) file.graphs.emplace(id, joint_graph_from_json(graph));
  for (const auto& [name, variant] : place["variants"].members())
    file.variants.emplace(name, read_variant(variant, file));
  if (file.variants.empty()) place["variants"].fail("a variant, such as {\"own/aten\": {\"graph\": \"g0\"}}");
  if (const auto runs = place.find("runs"))
    for (const auto& [key, run] : runs->members()) file.runs.emplace(key, read_run(key, run, file));
  return file;
}

void write_joint_graph_file(const std::string& path, const std::string& model, const JointGraph& graph,
                            const std::vector<int>& params) {
  // One node per line keeps the file readable and its diffs small.
  Json json = to_json(graph);
  const Json nodes = std::move(json["nodes"]);
  json.erase("nodes");
  const std::string head = json_text(json);
  std::string text = "{\"format\":" + json_text(kJointGraphFormat) + ",\n\"model\":" + json_text(model) +
                     ",\n\"graphs\":{\n\"g0\":" + head.substr(0, head.size() - 1) + ",\"nodes\":[";
  for (size_t i = 0; i < nodes.size(); ++i) text += (i == 0 ? "\n" : ",\n") + json_text(nodes[i]);
  text += "]}},\n\"variants\":{\"own/aten\":" + json_text({{"graph", "g0"}, {"params", params}}) + "}}\n";
  write_text(path, text);
}

}  // namespace plumbline::partition
