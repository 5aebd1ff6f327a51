// The readable forms of a pipe (text, Graphviz) and its JSON.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/error.h"
#include "runtime/graph/io/text.h"
#include "runtime/split/io/pipe_dot.h"
#include "runtime/split/io/pipe_json.h"
#include "runtime/split/io/print.h"
#include "runtime/testing/dot_checker.h"
#include "runtime/testing/small_pipes.h"

namespace plumbline::split {
namespace {

TEST(PipePrint, RootAndStages) {
  const std::string text = to_text(testing::three_stage_pipe());
  const std::string expected = R"(pipe of 3 stages
stage 0: 2 calls, 2 parameters (14 elements), 0 buffers
stage 1: 4 calls, 0 parameters (0 elements), 1 buffer
stage 2: 3 calls, 1 parameter (9 elements), 0 buffers
boundary "block:matmul": f32[2,3]*, output 0 of stage 0 -> input 0 of stage 1, input 0 of stage 2, gradient returns
boundary "block": f32[2,3], output 1 of stage 0 -> input 1 of stage 1
boundary "cond": f32[2,3]*, output 0 of stage 1 -> input 1 of stage 2, gradient returns
shared parameter "block.w": stages 0, 2

stage 0
input %0: f32[2,3] = "x"
input %1: f32[2,3] = "mask"
)";
  EXPECT_EQ(text.substr(0, expected.size()), expected);
  const Pipe pipe = testing::three_stage_pipe();
  size_t at = 0;
  for (int s = 0; s < 3; ++s) {
    at = text.find("\nstage " + std::to_string(s) + "\n" + to_text(pipe.stages[s].graph), at);
    EXPECT_NE(at, std::string::npos) << "stage " << s;
  }
}

TEST(PipeDot, EachBoundaryOnceForEachStageThatUsesIt) {
  const Pipe pipe = testing::three_stage_pipe();
  const testing::DotPicture picture = testing::DotChecker(to_dot(pipe)).read();
  std::vector<std::string> edges;
  for (const testing::DotEdge& edge : picture.edges) {
    auto attributes = edge.attributes;
    const bool both = attributes["dir"] == "both", dashed = attributes["style"] == "dashed";
    edges.push_back(edge.from + ">" + edge.to + " " + attributes["label"] + (both ? " both" : "") +
                    (dashed ? "dashed" : ""));
  }
  EXPECT_EQ(edges,
            (std::vector<std::string>{
                "stage0>stage1 block:matmul\nf32[2,3]* both", "stage0>stage2 block:matmul\nf32[2,3]* both",
                "stage0>stage1 block\nf32[2,3]", "stage1>stage2 cond\nf32[2,3]* both", "shared0>stage0 dashed",
                "shared0>stage2 dashed", "input0>stage0 ", "input1>stage0 ", "stage2>output0 ", "stage2>output1 "}));
  EXPECT_EQ(picture.subgraphs.size(), 3u);
  EXPECT_EQ(picture.members.at("cluster_stage2"), std::vector<std::string>{"stage2"});
  EXPECT_EQ(picture.nodes.at("shared0").at("label"), "block.w");
  EXPECT_EQ(picture.nodes.at("stage2").at("label"), "3 calls, 1 parameter (9 elements), 0 buffers\nhead (a::Head)");
}

TEST(PipeDot, AnyNamesAreQuoted) {
  Pipe pipe = testing::three_stage_pipe();
  pipe.boundaries[0].name = "a\"];\n} \\";
  pipe.shared[0].name = "\\\"";
  const testing::DotPicture picture = testing::DotChecker(to_dot(pipe)).read();
  EXPECT_EQ(picture.edges[0].attributes.at("label"), "a\"];\n} \\\nf32[2,3]*");
  EXPECT_EQ(picture.nodes.at("shared0").at("label"), "\\\"");
}

TEST(PipeJson, StructureComesBack) {
  const Pipe pipe = testing::three_stage_pipe();
  const nlohmann::json json = parse_json(json_text(to_json(pipe, [](int) { return true; })), "p");
  EXPECT_EQ(json["boundaries"][0],
            nlohmann::json::parse(R"({"name": "block:matmul", "producer": 0, "output": 0, "has_gradient": true,
              "value": {"kind": "tensor", "dtype": "f32", "sizes": [2, 3], "requires_grad": true, "storage": -1},
              "consumers": [{"stage": 1, "input": 0}, {"stage": 2, "input": 0}]})"));
  EXPECT_EQ(json["shared"], nlohmann::json::parse(R"([{"name": "block.w", "stages": [0, 2]}])"));
  EXPECT_EQ(json["stages"][2]["inputs"], nlohmann::json::parse("[0, 2]"));
  EXPECT_EQ(json["stages"][0]["outputs"], nlohmann::json::parse("[0, 1]"));
  const Pipe again = pipe_from_json(JsonPlace(json, "p"));
  EXPECT_EQ(to_json(again, [](int) { return true; }), json);
  for (int s = 0; s < 3; ++s) EXPECT_EQ(to_text(again.stages[s].graph), to_text(pipe.stages[s].graph));
}

TEST(PipeJson, LocalLossesComeBack) {
  Pipe pipe = testing::three_stage_pipe();
  EXPECT_FALSE(to_json(pipe, [](int) { return true; }).contains("local_losses"));
  pipe.local_losses = {{.stage = 1, .output = 2, .model_output = 3}};
  const nlohmann::json json = to_json(pipe, [](int) { return true; });
  EXPECT_EQ(json["local_losses"], nlohmann::json::parse(R"([{"stage": 1, "output": 2, "model_output": 3}])"));
  EXPECT_EQ(to_json(pipe_from_json(JsonPlace(json, "p")), [](int) { return true; }), json);
  EXPECT_NE(to_text(pipe).find("output 3 of the model stays as output 2 of stage 1"), std::string::npos);
}

TEST(PipeJson, AnEarlyEndComesBack) {
  Pipe pipe = testing::three_stage_pipe();
  EXPECT_FALSE(to_json(pipe, [](int) { return true; }).contains("ends_early"));
  pipe.ends_early = true;
  const nlohmann::json json = to_json(pipe, [](int) { return true; });
  EXPECT_TRUE(json.at("ends_early").get<bool>());
  EXPECT_TRUE(pipe_from_json(JsonPlace(json, "p")).ends_early);
}

TEST(PipeJson, ErrorsNameThePlace) {
  const nlohmann::json good = to_json(testing::three_stage_pipe(), [](int) { return true; });
  const std::pair<const char*, const char*> cases[] = {
      {"/format", "p: format: expected a string, not 3"},
      {"/stages/1/inputs/0", "p: stages[1].inputs[0]: expected an integer from 0 to 2, not 3"},
      {"/boundaries/0/consumers/1/stage",
       "p: boundaries[0].consumers[1].stage: expected an integer from 0 to 2, not 3"},
      {"/boundaries/0/name", "p: boundaries[0].name: expected a string, not 3"},
      {"/shared/0/stages/0", "p: shared[0].stages[0]: expected an integer from 0 to 2, not 3"},
      {"/stages/2/graph/nodes/0/op", "p: stages[2].graph.nodes[0].op: expected a string, not 3"},
  };
  for (const auto& [pointer, expected] : cases) {
    nlohmann::json json = good;
    json[nlohmann::json::json_pointer(pointer)] = 3;
    try {
      pipe_from_json(JsonPlace(json, "p"));
      ADD_FAILURE() << "accepted: " << pointer;
    } catch (const InputError& error) {
      EXPECT_STREQ(error.what(), expected);
    }
  }
}

}  // namespace
}  // namespace plumbline::split
