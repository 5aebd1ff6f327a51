// plumbline partition of programs: a stage is traced, and its joint graph is partitioned like one from a file.
#include <nlohmann/json.hpp>

#include "conformance/cli/testing/cli_fixture.h"

namespace plumbline::cli {
namespace {

using Json = nlohmann::json;
using PartitionProgram = Cli;

std::string program(const char* name) { return std::string(PLUMBLINE_PT2_TESTDATA) + "/" + name + "/model.pt2"; }

TEST_F(PartitionProgram, WholeAndByStage) {
  const conformance::ProcessResult whole = start({"partition", program("tied"), "--mode", "bytes"});
  EXPECT_EQ(whole.exit_code, 0) << whole.output;
  EXPECT_NE(whole.output.find("own/aten"), std::string::npos) << whole.output;
  const conformance::ProcessResult stage = start({"partition", program("tied"), "--stages", "2", "--stage", "1"});
  EXPECT_EQ(stage.exit_code, 0) << stage.output;
  EXPECT_NE(stage.output.find("stage 1"), std::string::npos) << stage.output;
}

TEST_F(PartitionProgram, KeptGraphIsPartitionedAlike) {
  const std::string kept = (folder_ / "kept.json.gz").string();
  for (const char* part : {"", "--decompose"}) {
    std::vector<std::string> words = {"partition", program("embedding"), "--mode", "min-cut", "--json", "-o", kept};
    if (*part) words.push_back(part);
    const conformance::ProcessResult traced = start(words);
    const conformance::ProcessResult read = start({"partition", kept, "--mode", "min-cut", "--json"});
    ASSERT_EQ(traced.exit_code, 0) << traced.output;
    ASSERT_EQ(read.exit_code, 0) << read.output;
    Json a = Json::parse(traced.output), b = Json::parse(read.output);
    EXPECT_GT(a["saved"].size(), 0u);
    for (const char* key : {"saved", "fw", "bw", "bytes", "peak"}) EXPECT_EQ(a[key], b[key]) << key;
  }
}

TEST_F(PartitionProgram, WrongWordsEndWithTwoAndOneLine) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"partition", program("tied"), "--stages", "2"}, "choose one by --stage K"},
      {{"partition", program("tied"), "--stages", "2", "--stage", "2"}, "stages 0 to 1"},
      {{"partition", "graph.json", "--stages", "2"}, "are for a program"},
      {{"partition", "absent.pt2"}, "absent.pt2"}};
  expect_refused(wrong);
}

}  // namespace
}  // namespace plumbline::cli
