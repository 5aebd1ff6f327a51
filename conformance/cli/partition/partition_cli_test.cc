// plumbline partition from the command line.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "conformance/cli/testing/cli_fixture.h"
#include "runtime/io/gzip.h"

namespace plumbline::cli {
namespace {

using Json = nlohmann::json;
using PartitionCli = Cli;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

fs::path testdata(const std::string& model) { return fs::path(PLUMBLINE_PARTITION_TESTDATA) / (model + ".json.gz"); }

Json recorded(const std::string& model) { return Json::parse(read_text(testdata(model).string())); }

/// x -> sin -> mm -> y: the file of a user, without recorded runs.
Json own() {
  const auto node = [](const char* name, const char* kind, const char* op, std::vector<std::string> inputs,
                       int storage) {
    Json made = {
        {"name", name},
        {"kind", kind},
        {"out", {{"dtype", "float32"}, {"shape", {8, 8}}, {"strides", {8, 1}}, {"bytes", 256}, {"storage", storage}}}};
    if (*op == 0) return made;
    made["op"] = op;
    made["overload"] = "default";
    made["args"] = Json::array();
    for (const std::string& input : inputs) made["args"].push_back({{"node", input}});
    return made;
  };
  Json tangent = node("dy", "tangent", "", {}, 2);
  return {{"format", "plumbline-joint-graph/1"},
          {"graphs",
           {{"g",
             {{"nodes",
               {node("x", "primal", "", {}, 0), node("w", "primal", "", {}, 1), tangent,
                node("sin", "call", "aten::sin", {"x"}, 3), node("y", "call", "aten::mm", {"sin", "w"}, 4),
                node("t", "call", "aten::t", {"sin"}, 3), node("dw", "call", "aten::mm", {"t", "dy"}, 5),
                node("wt", "call", "aten::t", {"w"}, 1), node("dsin", "call", "aten::mm", {"dy", "wt"}, 6),
                node("cos", "call", "aten::cos", {"x"}, 7), node("dx", "call", "aten::mul", {"dsin", "cos"}, 8)}},
              {"outputs", {"y", "dx", "dw"}},
              {"num_forward_outputs", 1},
              {"storage_bytes", {256, 256, 256, 256, 256, 256, 256, 256, 256}}}}}},
          {"variants", {{"own/aten", {{"graph", "g"}, {"params", {1}}}}}}};
}

TEST_F(PartitionCli, BadInputEndsWithTwoAndOneLine) {
  write_text((folder_ / "own.json").string(), own().dump());
  write_text((folder_ / "text.json").string(), "no JSON");
  Json broken = own();
  broken["graphs"]["g"]["nodes"][4]["args"][0]["node"] = "dx";
  write_text((folder_ / "broken.json").string(), broken.dump());
  Json misspelt = own();
  misspelt["graphs"]["g"]["nodes"][4]["agrs"] = 1;
  write_text((folder_ / "misspelt.json").string(), misspelt.dump());
  std::ofstream(folder_ / "cut.json.gz", std::ios::binary)
      << std::ifstream(testdata("mlp_gelu"), std::ios::binary).rdbuf();
  fs::resize_file(folder_ / "cut.json.gz", 1000);
  const std::string mlp = testdata("mlp_gelu").string();
  const std::vector<std::pair<std::vector<std::string>, std::string>> inputs = {
      {{"partition"}, "graph is required"},
      {{"partition", "nowhere.json"}, "cannot read nowhere.json: No such file or directory"},
      {{"partition", "text.json"}, "text.json is not JSON: "},
      {{"partition", "cut.json.gz"}, "cannot read cut.json.gz: damaged gzip"},
      {{"partition", "broken.json"},
       "broken.json: graphs.g.nodes[4].args[0].node: expected the name of a node that comes before"},
      {{"partition", "misspelt.json"}, "graphs.g.nodes[4]: expected an object with no other members than name, kind"},
      {{"partition", mlp}, "choose one by --variant: 2.11.0/aten, 2.11.0/inductor, 2.15.0/aten, 2.15.0/inductor"},
      {{"partition", mlp, "--variant", "2.15"}, "no variant '2.15'; expected one of 2.11.0/aten, "},
      {{"partition", "own.json", "--mode", "fast"}, "the mode 'fast' is none of default, min-cut"},
      {{"partition", "own.json", "--mode", "budget=2"}, "the mode 'budget=2'"},
      {{"partition", "own.json", "--static", "all"}, "--static"},
      {{"partition", "own.json", "--policy", "torch-1.0"}, "torch-2.15"},
      {{"partition", "own.json", "--must-save", "sin,son"}, "--must-save: the graph has no node 'son'"},
      {{"partition", "own.json", "--recompute", "z"}, "--recompute: the graph has no node 'z'"},
      {{"partition", "own.json", "--dot", "own.pdf"}, "own.pdf is not F.dot or F.svg"},
      {{"partition", "own.json", "--dot", "nowhere/own.dot"}, "cannot write nowhere/own.dot"},
      {{"partition", "own.json", "--part", "forward"}, "--part requires --dot"},
      {{"partition", "own.json", "--runs"}, "own.json records no runs"},
      {{"partition", mlp, "--runs", "--mode", "bytes"}, "--mode excludes --runs"},
  };
  expect_refused(inputs);
}

TEST_F(PartitionCli, WordsThatWouldBeIgnoredAreRefused) {
  write_text((folder_ / "own.json").string(), own().dump());
  const std::string mlp = testdata("mlp_gelu").string();
  const std::vector<std::pair<std::vector<std::string>, std::string>> inputs = {
      {{"partition", mlp, "--runs", "-o", "kept.json"}, "--runs excludes --out"},
      {{"partition", "own.json", "--json", "--explain"}, "--explain excludes --json"},
      {{"partition", "own.json", "--pareto", "--mode", "bytes"}, "--pareto covers all budgets, not --mode bytes"},
      {{"partition", "own.json", "--pareto", "--mode", "min-cut"}, "expected --mode budget=X:SOLVER"},
      {{"partition", "own.json", "--mode", "budget=0.5:peak:greedy"}, "the mode 'budget=0.5:peak:greedy' is none of"},
      {{"partition", "own.json", "--mode", "budget=0.5:greedy:exact"}, "the mode 'budget=0.5:greedy:exact' is none of"},
      {{"partition", "own.json", "--svg", "pareto.svg"}, "--svg requires --pareto"},
      // Tags on nodes.
      {{"partition", "own.json", "--must-save", "dsin"}, "--must-save: 'dsin' belongs to the backward"},
      {{"partition", "own.json", "--must-save", "dy"}, "--must-save: 'dy' belongs to the backward"},
      {{"partition", "own.json", "--recompute", "dsin"}, "--recompute: 'dsin' belongs to the backward"},
      {{"partition", "own.json", "--recompute", "x"},
       "--recompute: 'x' is an input or a constant, which is never computed"},
      {{"partition", "own.json", "--must-save", "sin", "--recompute", "t,sin"},
       "--recompute: 'sin' is named by --must-save as well"},
      {{"partition", "own.json", "--mode", "budget=0", "--must-save", "sin"},
       "--must-save: the mode budget=0 recomputes 'sin' anyway"},
      {{"partition", "own.json", "--pareto", "--must-save", "sin"}, "the mode budget=0 recomputes 'sin' anyway"},
  };
  expect_refused(inputs);
}

/// own(), with sin computed twice: y uses one, and dw the transpose of the other.
Json with_equal_calls() {
  Json file = own();
  Json& nodes = file["graphs"]["g"]["nodes"];
  Json again = nodes[3];
  again["name"] = "sin_1";
  again["out"]["storage"] = 9;
  nodes[5]["args"][0]["node"] = "sin_1";
  nodes[5]["out"]["storage"] = 9;
  nodes.insert(nodes.begin() + 4, again);
  // The backward reads both: a call that only the forward reads is not merged with one that the backward reads.
  nodes[11]["args"] = Json::array({{{"node", "dsin"}}, {{"node", "sin"}}});
  file["graphs"]["g"]["storage_bytes"].push_back(256);
  return file;
}

// Equal calls are merged before the graph is partitioned, and PyTorch keeps the tag of the first: a tag on the second
// must count as well.
TEST_F(PartitionCli, WordsHoldForEqualCalls) {
  write_text((folder_ / "own.json").string(), with_equal_calls().dump());
  for (const std::string mode : {"min-cut", "aggressive", "bytes", "budget=0.5:peak"})
    for (const char* name : {"sin", "sin_1"}) {
      const auto saved = [&](const char* option) {
        const conformance::ProcessResult result =
            start({"partition", "own.json", "--mode", mode, "--static", "none", "--json", option, name});
        EXPECT_EQ(exit_code(result), 0) << mode << " " << option << " " << name << ": " << result.output;
        const Json answer = Json::parse(result.output);
        return std::ranges::count(answer["saved"], Json("sin")) + std::ranges::count(answer["saved"], Json("t"));
      };
      EXPECT_GT(saved("--must-save"), 0) << mode << " " << name;
      EXPECT_EQ(saved("--recompute"), 0) << mode << " " << name;
    }
  expect_refused({{{"partition", "own.json", "--must-save", "sin", "--recompute", "sin_1"},
                   "--recompute: 'sin_1' is merged with the equal call 'sin', which is named by --must-save as well"}});
}

TEST_F(PartitionCli, SaysWhichBudgetIsInForce) {
  Json file = own();
  write_text((folder_ / "own.json").string(), file.dump());
  file["graphs"]["g"]["nodes"][3]["memory_budget"] = 0.25;
  write_text((folder_ / "asks.json").string(), file.dump());
  for (const char* mode : {"min-cut", "budget=1"}) {
    const conformance::ProcessResult printed = start({"partition", "asks.json", "--mode", mode});
    EXPECT_TRUE(has(printed, "own/aten: 11 nodes; budget=0.25, as the graph itself requests, by the policy torch-2.15"))
        << printed.output;
    const Json answer = Json::parse(start({"partition", "asks.json", "--mode", mode, "--json"}).output);
    EXPECT_EQ(answer["run"], "budget=0.25/static=params");
  }
  EXPECT_TRUE(has(start({"partition", "asks.json", "--mode", "bytes"}), "11 nodes; bytes by the policy"));
  // The plans of the budgets do not depend on the budget that the graph requests.
  const std::string plain = start({"partition", "own.json", "--pareto", "--static", "none"}).output;
  EXPECT_EQ(start({"partition", "asks.json", "--pareto", "--static", "none"}).output,
            "the graph itself requests a budget of 0.25, which is ignored here\n\n" + plain);
}

TEST_F(PartitionCli, KeepsAGraphOnceItIsDivided) {
  write_text((folder_ / "own.json").string(), own().dump());
  const conformance::ProcessResult refused =
      start({"partition", "own.json", "--mode", "budget=0", "--must-save", "sin", "-o", "kept.json"});
  EXPECT_EQ(exit_code(refused), 2);
  EXPECT_FALSE(fs::exists(folder_ / "kept.json"));
  EXPECT_EQ(exit_code(start({"partition", "own.json", "--dot", "own.pdf", "-o", "kept.json"})), 2);
  EXPECT_FALSE(fs::exists(folder_ / "kept.json"));
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--pareto", "--mode", "budget=1:peak"}}) {
    std::vector<std::string> words = {"partition", "own.json", "--must-save", "sin", "-o", "kept.json"};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(exit_code(start(words)), 0);
    EXPECT_EQ(Json::parse(read_text((folder_ / "kept.json").string()))["graphs"]["g0"]["nodes"][3]["recompute"],
              "MUST_SAVE");
    fs::remove(folder_ / "kept.json");
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1) << "own.json";
}

TEST_F(PartitionCli, HelpNamesEveryModeAndSolver) {
  const std::string help = start({"partition", "--help"}).output;
  for (const char* word : {"default:", "min-cut", "aggressive:", "bytes:", "budget=X:", "budget=X:SOLVER", "exact",
                           "greedy", "hirschberg", "knee-point", "budget=X:peak"})
    EXPECT_NE(help.find(word), std::string::npos) << word;
}

TEST_F(PartitionCli, AnswersTheRunsThatPyTorchRecorded) {
  for (const char* model : {"mlp_gelu", "sac_policy", "dynamic_mlp", "checkpoint_dropout"}) {
    const Json file = recorded(model);
    const conformance::ProcessResult printed = start({"partition", testdata(model).string(), "--runs"});
    EXPECT_EQ(exit_code(printed), 0) << printed.output;
    EXPECT_TRUE(has(printed, "\n64 of 64 equal to the record\n")) << printed.output;

    const conformance::ProcessResult answered = start({"partition", testdata(model).string(), "--runs", "--json"});
    EXPECT_EQ(exit_code(answered), 0);
    size_t answers = 0;
    for (const std::string& line : lines_of(answered.output)) {
      const Json answer = Json::parse(line);
      const std::string key = answer["variant"].get<std::string>() + "/" + answer["run"].get<std::string>();
      ASSERT_TRUE(file["runs"].contains(key)) << line;
      EXPECT_EQ(answer["model"], model);
      const Json& run = file["runs"][key];
      for (const char* saved : {"saved", "saved_sym"}) EXPECT_EQ(answer[saved], run[saved]) << model << " " << key;
      for (const char* half : {"fw", "bw"})
        for (const char* part : {"in", "ops", "out"})
          EXPECT_EQ(answer[half][part], run[half][part]) << model << " " << key << " " << half << "." << part;
      ++answers;
    }
    EXPECT_EQ(answers, file["runs"].size());
  }
}

TEST_F(PartitionCli, SaysWhichRunsDiffer) {
  Json file = recorded("mlp_gelu");
  file["runs"]["2.15.0/aten/min_cut/static=none"]["saved"].erase(0);
  write_text((folder_ / "changed.json").string(), file.dump());
  const conformance::ProcessResult result = start({"partition", "changed.json", "--runs", "--variant", "2.15.0/aten"});
  EXPECT_EQ(exit_code(result), 1);
  EXPECT_TRUE(has(result, "2.15.0/aten/min_cut/static=none            different  saved: has primals_3\n"))
      << result.output;
  EXPECT_TRUE(has(result, "\n15 of 16 equal to the record\n")) << result.output;
}

TEST_F(PartitionCli, PrintsWhatIsSaved) {
  write_text((folder_ / "own.json").string(), own().dump());
  // w is a parameter, so saving it is free. Saving x is enough: sin is recomputed from it.
  const conformance::ProcessResult bytes = start({"partition", "own.json", "--mode", "bytes"});
  EXPECT_EQ(exit_code(bytes), 0);
  EXPECT_TRUE(has(bytes, "own/aten: 11 nodes; bytes by the policy torch-2.15, static inputs: 1\n")) << bytes.output;
  EXPECT_TRUE(has(bytes, "\n            0 bytes of new storage")) << bytes.output;
  EXPECT_TRUE(has(bytes, "\nrecomputed  1: sin\n")) << bytes.output;
  const conformance::ProcessResult word = start({"partition", "own.json", "--mode", "bytes", "--must-save", "sin"});
  EXPECT_TRUE(has(word, "\n            256 bytes of new storage")) << word.output;
  EXPECT_TRUE(has(word, "\nrecomputed  0\n")) << word.output;

  const conformance::ProcessResult all =
      start({"partition", "own.json", "--mode", "default", "--static", "none", "--explain"});
  EXPECT_TRUE(has(all, "static inputs: none\n")) << all.output;
  EXPECT_TRUE(has(all, "\n# remat/fw/bw: 0/")) << all.output;
  EXPECT_TRUE(has(all, "\nOps banned from re-materialization: {aten.mm}\n")) << all.output;

  const Json answer = Json::parse(start({"partition", "own.json", "--mode", "bytes", "--json"}).output);
  EXPECT_EQ(answer["variant"], "own/aten");
  EXPECT_EQ(answer["run"], "bytes/static=params");
  EXPECT_EQ(answer["bytes_new_storage"], 0);
  EXPECT_EQ(answer["fw"]["ops"], Json({"sin", "y"}));
  EXPECT_TRUE(answer["peak"].get<int64_t>() > 0);
}

TEST_F(PartitionCli, DrawsTheGraphs) {
  write_text((folder_ / "own.json").string(), own().dump());
  for (const char* part : {"joint", "forward", "backward"}) {
    const conformance::ProcessResult result = start({"partition", "own.json", "--dot", "own.dot", "--part", part});
    EXPECT_EQ(exit_code(result), 0) << result.output;
    EXPECT_TRUE(read_text((folder_ / "own.dot").string()).starts_with("digraph " + std::string(part) + " {"));
  }
}

// The chain of five products: each tenth of the budget up to a half saves one more of them, the whole the cosines too.
TEST_F(PartitionCli, PrintsWhatEachBudgetBuys) {
  const conformance::ProcessResult result =
      start({"partition", testdata("matmul_even").string(), "--variant", "2.15.0/aten", "--pareto", "--static", "none",
             "--svg", "pareto.svg"});
  EXPECT_EQ(exit_code(result), 0) << result.output;
  std::vector<int> products;
  for (const std::string& line : lines_of(result.output)) {
    std::istringstream words(line);
    double budget = 0;
    int64_t bytes = 0, storage = 0;
    if (words >> budget >> bytes >> storage) products.push_back(static_cast<int>(storage / (64 * 64 * 4)));
  }
  EXPECT_EQ(products, (std::vector<int>{0, 1, 2, 3, 4, 5, 10})) << result.output;
  EXPECT_TRUE(read_text((folder_ / "pareto.svg").string()).starts_with("<svg "));
  EXPECT_EQ(exit_code(start({"partition", testdata("matmul_even").string(), "--svg", "pareto.svg"})), 2);
}

}  // namespace
}  // namespace plumbline::cli
