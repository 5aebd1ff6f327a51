// `plumbline split` and `plumbline run --program` on archives of torch.export, compared with PyTorch's results
// (runtime/capture/pt2/testdata; integers, so the same bits on every machine).
#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <sstream>

#include "conformance/cli/testing/cli_fixture.h"
#include "runtime/io/tensor_file.h"
#include "runtime/testing/in_full.h"
#include "runtime/testing/refusal.h"

namespace plumbline::cli {
namespace {

class Program : public Cli {
 protected:
  static std::string data(const std::string& file) { return std::string(PLUMBLINE_PT2_TESTDATA) + "/" + file; }

  /// Runs an archive on its stored batch and compares with PyTorch's stored results.
  conformance::ProcessResult run_expecting(const std::string& name, const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"run",
                                      "--program",
                                      data(name + "/model.pt2"),
                                      "--inputs",
                                      data(name + "/inputs.safetensors"),
                                      "--expect",
                                      data(name + "/expected.safetensors")};
    words.insert(words.end(), more.begin(), more.end());
    return start(words);
  }
  void expect_same_bits(const std::string& name, const std::vector<std::string>& more) const {
    std::string command = name;
    for (const std::string& word : more) command += " " + word;
    const conformance::ProcessResult result = run_expecting(name, more);
    EXPECT_EQ(exit_code(result), 0) << command << "\n" << result.output;
  }
};

struct Archive {
  std::string name, loss;
  std::vector<std::string> modules;  ///< in the order in which they run
};
const std::vector<Archive> archives = {
    {"tied", "mse:TARGET", {"middle", "head"}},
    {"no_grad", "sum", {"teacher", "second"}},
    {"no_grad-211", "sum", {"teacher", "second"}},
    {"cond", "sum", {"last"}},
    {"in_place", "sum", {"second"}},
    {"in_place-211", "sum", {"second"}},
    {"nonzero", "mse:TARGET", {"last"}},
    {"keywords", "sum", {"second"}},
    {"autocast", "sum", {"second", "last"}},
    {"twice", "sum", {"between", "last"}},
    {"embedding", "mse:TARGET", {"body", "head"}},
    {"views", "sum", {"second"}},
    {"branches", "sum", {"second"}},
    {"buffer_out", "sum", {"second"}},
    {"average", "sum", {"second"}},
    {"number_first", "output:1", {"second"}},
    {"dynamic", "sum", {}},
};

TEST_F(Program, WholeItHasTheBitsOfPyTorch) {
  for (const Archive& archive : some_of(archives)) expect_same_bits(archive.name, {"--loss", archive.loss});
}

TEST_F(Program, RecomputedItHasTheBitsOfPyTorch) {
  for (const Archive& archive : some_of(archives, 1)) {
    if (archive.modules.empty()) continue;
    expect_same_bits(archive.name, {"--loss", archive.loss, "--recompute", "always", "--split", archive.modules[0]});
  }
  expect_same_bits("twice", {"--loss", "sum", "--recompute", "except-last", "--recompute-blocks", "shared"});
}

TEST_F(Program, RematerialisedItHasTheBitsOfPyTorch) {
  for (const std::string& name : some_of<std::string>(
           {"tied", "no_grad", "in_place", "keywords", "twice", "embedding", "buffer_out", "average", "views"})) {
    const Archive& archive = *std::ranges::find(archives, name, &Archive::name);
    expect_same_bits(name, {"--loss", archive.loss, "--remat", "bytes", "--split", archive.modules[0]});
    expect_same_bits(name, {"--loss", archive.loss, "--remat", "budget=0", "--remat-policy", "seed", "--schedule",
                            "zb-h2", "--split", archive.modules[0]});
  }
}

TEST_F(Program, WhatDependsOnDataIsNotRematerialised) {
  for (const auto& [name, loss] : {std::pair("cond", "sum"), std::pair("nonzero", "mse:TARGET")}) {
    const conformance::ProcessResult result = run_expecting(name, {"--loss", loss, "--remat", "bytes"});
    EXPECT_EQ(exit_code(result), 2) << name;
    for (const char* part : {"stage 0 has no joint graph", "run it without --remat"})
      testing::expect_part(result.output, part);
  }
}

TEST_F(Program, SplitAtModulesItHasTheBitsOfPyTorch) {
  size_t turn = 0;
  for (const Archive& archive : some_of(archives, 2)) {
    std::string split;
    for (const std::string& module : archive.modules) {
      split += (split.empty() ? "" : ",") + module;
      if (!testing::in_full() && &module != &archive.modules.back()) continue;
      const char* schedule = std::array{"gpipe", "1f1b", "zb-h2"}[turn++ % 3];
      expect_same_bits(archive.name, {"--loss", archive.loss, "--split", split, "--schedule", schedule});
    }
    if (split.empty() || !testing::in_full()) continue;
    for (const char* schedule : {"gpipe", "1f1b", "zb-h2"})
      expect_same_bits(archive.name, {"--loss", archive.loss, "--split", split, "--schedule", schedule});
    for (const char* manner : {"--route=direct", "--route=neighbours", "--shared=replicate"})
      expect_same_bits(archive.name, {"--loss", archive.loss, "--split", split, manner});
  }
  expect_same_bits("markers", {"--schedule", "gpipe"});
  expect_same_bits("tied", {"--loss", "mse:TARGET", "--split", "middle,head", "--shared", "head.weight=replicate"});
  expect_same_bits("twice", {"--loss", "sum", "--stages", "3"});
  for (const char* policy : {"flops", "measured-flops", "bytes", "time"})
    expect_same_bits("twice", {"--loss", "sum", "--stages", "2", "--policy", policy});
  expect_same_bits("twice", {"--loss", "sum", "--policy", "every:Linear:2"});
}

// Four stages on two ranks, by name and from a file; two stages on one; and both directions at once. The values are
// integers, so the order of sums does not matter.
TEST_F(Program, SeveralStagesARankAndASchedulesFile) {
  std::ofstream(folder_ / "mine.csv")
      << start({"schedule", "interleaved-1f1b", "--ranks", "2", "--microbatches", "4", "--format", "compute"}).output;
  for (const char* schedule : {"zb-v", "chimera", "mine.csv"})
    expect_same_bits("twice", {"--loss", "sum", "--stages", "4", "--schedule", schedule});
  if (with_mpi())
    expect_same_bits("twice", {"--loss", "sum", "--stages", "4", "--schedule", "mine.csv", "--transport", "mpi"});
  expect_same_bits("tied", {"--loss", "mse:TARGET", "--split", "middle", "--schedule", "zb-v", "--ranks", "1"});
  // Without other options the file determines the numbers of stages and micro-batches.
  const conformance::ProcessResult own = start({"run", "--program", data("twice/model.pt2"), "--schedule", "mine.csv"});
  EXPECT_EQ(exit_code(own), 0) << own.output;
  EXPECT_NE(own.output.find("stage 3 "), std::string::npos) << own.output;
  EXPECT_NE(own.output.find("4 micro-batches, mine.csv"), std::string::npos) << own.output;
}

TEST_F(Program, OverMpiAsWell) {
  if (!with_mpi()) GTEST_SKIP() << "no mpirun";
  expect_same_bits("markers", {"--transport", "mpi"});
  expect_same_bits("tied", {"--loss", "mse:TARGET", "--split", "middle,head", "--transport", "mpi"});
  const conformance::ProcessResult inside =
      start({"run", "--program", data("markers/model.pt2"), "--inputs", data("markers/inputs.safetensors"), "--expect",
             data("markers/expected.safetensors")},
            {"mpirun", "-n", "3"});
  EXPECT_EQ(exit_code(inside), 0) << inside.output;
  const conformance::ProcessResult bad = start({"run", "--program", data("markers/model.pt2")}, {"mpirun", "-n", "2"});
  EXPECT_EQ(exit_code(bad), 2) << bad.output;
  EXPECT_NE(bad.output.find("is cut into 3 stages, but there are 2 ranks"), std::string::npos) << bad.output;
}

TEST_F(Program, WhatItSavesIsWhatItExpects) {
  const std::string first = report("first"), second = report("second");
  for (const std::string& out : {first, second}) {
    const conformance::ProcessResult result =
        start({"run", "--program", data("embedding/model.pt2"), "--stages", "2", "--save-results", out, "--seed", "7"});
    ASSERT_EQ(exit_code(result), 0) << result.output;
  }
  const auto saved = [](const std::string& out) {
    std::ifstream in(out + "/results.safetensors", std::ios::binary);
    std::stringstream bytes;
    bytes << in.rdbuf();
    return bytes.str();
  };
  EXPECT_GT(saved(first).size(), 100u);
  EXPECT_EQ(saved(first), saved(second)) << "the samples are varied by the seed alone";
  const conformance::ProcessResult other = start({"run", "--program", data("embedding/model.pt2"), "--stages", "2",
                                                  "--seed", "8", "--expect", first + "/results.safetensors"});
  EXPECT_EQ(exit_code(other), 1) << other.output;
  EXPECT_NE(other.output.find("differs   "), std::string::npos) << other.output;
}

TEST_F(Program, WhatDiffersIsCountedByItsBits) {
  TensorMap expected = read_tensor_file(data("in_place/expected.safetensors"));
  const std::string file = (folder_ / "other.safetensors").string();
  std::vector<std::byte>& gradient = expected.at("grad.first.weight").data;  // f32[4,4], of which some elements are 0
  const auto told = [&] {
    write_tensor_file(file, expected);
    const conformance::ProcessResult result =
        start({"run", "--program", data("in_place/model.pt2"), "--inputs", data("in_place/inputs.safetensors"),
               "--loss", "sum", "--expect", file});
    EXPECT_EQ(exit_code(result), 1) << result.output;
    return result.output;
  };
  for (const size_t zero : {4, 5}) gradient.at(4 * zero + 3) = std::byte{0x80};
  testing::expect_part(told(),
                       "differs   grad.first.weight 2 of 16 elements differ, in their bits only (element 4: "
                       "0x00000000, expected 0x80000000)\n");
  const float hundred = 100;
  std::memcpy(&gradient.at(4 * 6), &hundred, sizeof hundred);
  testing::expect_part(told(),
                       "differs   grad.first.weight 3 of 16 elements differ, by 100 at most (element 6: 0, "
                       "expected 100)\n");
}

TEST_F(Program, SplitKeepsPrintsAndDraws) {
  const conformance::ProcessResult kept = start({"split", data("tied/model.pt2"), "--split", "middle,head:begin", "-o",
                                                 report("kept"), "--dot", report("pipe.dot")});
  EXPECT_EQ(exit_code(kept), 0) << kept.output;
  for (const char* file : {"program.json", "stage0.safetensors", "stage1.safetensors", "stage2.safetensors"})
    EXPECT_TRUE(fs::exists(fs::path(report("kept")) / file)) << file;
  EXPECT_GT(fs::file_size(report("pipe.dot")), 100u);
  const conformance::ProcessResult printed = start({"split", data("markers/model.pt2"), "--print"});
  EXPECT_EQ(exit_code(printed), 0) << printed.output;
  EXPECT_TRUE(printed.output.starts_with("pipe of 3 stages\n")) << printed.output;
}

TEST_F(Program, BadInputEndsWithTwoAndOneLine) {
  std::ofstream(folder_ / "no.pt2") << "not an archive";
  const std::string tied = data("tied/model.pt2");
  const Refusals inputs = {
      {{"run", "--program", "absent.pt2"}, "absent.pt2"},
      {{"run", "--program", "no.pt2"}, "no.pt2"},
      {{"run", "--program", data("custom/model.pt2")}, "custom/model.pt2"},
      {{"run", "--program", tied, "--split", "middle.x"}, "there is no 'middle.x'"},
      {{"run", "--program", tied, "--recompute-blocks", "nowhere"}, "goes with --recompute"},
      {{"run", "--program", tied, "--recompute", "always", "--recompute-blocks", "nowhere"},
       "no module directly inside 'nowhere' was entered"},
      {{"run", "--program", tied, "--split", "middle:before"}, "is not MODULE, MODULE:begin or MODULE:end"},
      {{"run", "--program", tied, "--split", "middle", "--stages", "2"}, "--split sets the stage borders"},
      {{"run", "--program", tied, "--stages", "400"}, "stages"},
      {{"run", "--program", tied, "--policy", "size", "--stages", "2"}, "'size': expected one of flops"},
      {{"run", "--program", tied, "--policy", "bytes"}, "needs --stages"},
      {{"run", "--program", tied, "--policy", "every:Linear:1", "--stages", "2"}, "leave out --stages"},
      {{"run", "--program", tied, "--policy", "size", "--stages", "1"}, "'size': expected one of flops"},
      {{"run", "--program", ""}, "no such file"},
      {{"run", "--program", tied, "--schedule", "nope"}, "nope"},
      {{"run", "--program", tied, "--schedule", "*"}, "*"},
      {{"run", "--program", tied, "--timeout", "nan"}, "--timeout"},
      {{"run", "--program", tied, "--save-results", "no.pt2"}, "cannot create the folder"},
      {{"run", "--program", tied, "--expect", "absent.safetensors"}, "absent.safetensors"},
      {{"run", "--program", tied, "--loss", "mse:x", "--inputs", data("embedding/inputs.safetensors")},
       "no tensor 'x'"},
      {{"run", "--program", data("markers/model.pt2"), "--loss", "cross-entropy:x"}, "the target 'x' is f32[12,4]"},
      {{"run", "--program", tied, "--policy", "every:Linear"}, "is not every:CLASS:N"},
      {{"run", "--program", tied, "--policy", "every:Conv2d:2"}, "Linear"},
      {{"run", "--program", tied, "--loss", "huber"}, "expected one of output:K, sum, mean"},
      {{"run", "--program", tied, "--loss", "output:4"}, "there is no output 4"},
      {{"run", "--program", data("number_first/model.pt2"), "--loss", "output:0"}, "output 0 is not a tensor"},
      {{"run", "--program", tied, "--loss", "mse:labels", "--inputs", data("tied/inputs.safetensors")},
       "no tensor 'labels', which --loss mse:labels needs; it holds TARGET, x"},
      {{"split", tied, "--dot", "pipe.png"}, "F.dot or F.svg"},
      {{"run", "--program", tied, "--loss", "output:0"}, "takes a scalar"},
      {{"run", "--program", tied, "--inputs", "absent.safetensors"}, "absent.safetensors"},
      {{"run", "--program", tied, "--inputs", data("markers/expected.safetensors")}, "no tensor 'x'"},
      {{"run", "--program", tied, "--inputs", data("tied/inputs.safetensors")},
       "'TARGET' is not an input of the program"},
      {{"run", "--program", tied, "--inputs", data("markers/inputs.safetensors"), "--microbatches", "3"},
       "the program is specialised to f32[4,4]"},
      {{"run", "--program", tied, "--split", "middle", "--ranks", "3"}, "is cut into 2 stages, but there are 3 ranks"},
      {{"run", "--program", tied, "--split", "middle", "--schedule", "zb-*"}, "runs under one schedule"},
      {{"run", "--program", tied, "--split", "middle", "--schedule", "forward-only"}, "it has no backward"},
      {{"run", "--program", tied, "--split", "middle,head", "--schedule", "zb-v"}, "cannot have 3 stages"},
      {{"run", "--program", tied, "--shared", "copy"}, "expected one of transmit, replicate, NAME=transmit"},
      {{"run", "--program", tied, "--shared", "nowhere.weight=replicate"}, "there is no parameter 'nowhere.weight'"},
      {{"run", "--program", tied, "--case", "x"}, "does not go with --program"},
      {{"run", "--inputs", "x"}, "--inputs goes with --program"},
      {{"split", data("markers/model.pt2"), "--stages", "2"}, "holds pipe_split() markers"},
      {{"split", tied, "--split", "nowhere"}, "there is no 'nowhere'"},
      {{"split"}, "program"},
  };
  expect_refused(some_of(inputs));
}

}  // namespace
}  // namespace plumbline::cli
