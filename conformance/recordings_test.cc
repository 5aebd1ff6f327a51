#include "conformance/recordings.h"

#include <gtest/gtest.h>

#include "runtime/error.h"
#include "runtime/temporary_folder.h"

namespace plumbline {
namespace {

namespace fs = std::filesystem;

class Recordings : public ::testing::Test {
 protected:
  /// A recording of two micro-batches through modules `names`; `stage_of` says where a module lies (-1: nobody says).
  void record(const std::string& folder, const std::vector<std::string>& names, int modules_a_stage) {
    fs::create_directories(folder_ / folder);
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string stage = modules_a_stage ? std::to_string(i / modules_a_stage) : "-";
      TensorMap& file = files_[folder][modules_a_stage ? "rank" + stage : "rank0"];
      for (const std::string microbatch : {"0", "1"})
        for (const std::string kind : {"forward", "backward"})
          file["0/" + kind + "/" + stage + "/" + microbatch + "/" + names[i]] =
              make_f64({2}, {static_cast<double>(i), 1.0});
      file["0/grad/-/-/" + names[i] + ".weight"] = make_f64({}, {static_cast<double>(i)});
    }
  }
  void write() {
    for (const auto& [folder, files] : files_)
      for (const auto& [name, tensors] : files) write_tensor_file(folder_ / folder / (name + ".safetensors"), tensors);
  }
  std::string first() {
    write();
    const RecordingsVerdict verdict = compare_recordings(folder_ / "pipeline", folder_ / "alone");
    return verdict.equal() ? "" : recording_sentence(verdict.differences.front());
  }
  std::string refusal() {
    try {
      compare_recordings(folder_ / "pipeline", folder_ / "alone");
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  const TemporaryFolder folder_;
  std::map<std::string, std::map<std::string, TensorMap>> files_;
};

const std::vector<std::string> kLayers = {"embed", "layers.2", "layers.10", "head"};

TEST_F(Recordings, AreEqualWhateverStagesTheModulesLieIn) {
  record("alone", kLayers, 0);
  record("pipeline", kLayers, 2);
  EXPECT_EQ(first(), "");
  const RecordingsVerdict verdict = compare_recordings(folder_ / "pipeline", folder_ / "alone");
  EXPECT_EQ(verdict.tensors, 4 * 5);
  EXPECT_EQ(verdict.checked, (std::vector<std::string>{"backward", "forward", "grad"}));
}

TEST_F(Recordings, TheFirstModuleMicrobatchAndDirectionIsNamed) {
  record("alone", kLayers, 0);
  record("pipeline", kLayers, 2);
  auto& pipeline = files_["pipeline"];
  pipeline["rank0"]["0/grad/-/-/embed.weight"] = make_f64({}, {9});
  EXPECT_EQ(first(), "step 0, grad `embed.weight`: f64[] differs in 1 of 1 elements; first: expected 0, got 9");
  // Going back, the later module comes first.
  pipeline["rank0"]["0/backward/0/1/layers.2"] = make_f64({2}, {9, 1});
  pipeline["rank1"]["0/backward/1/1/layers.10"] = make_f64({2}, {9, 1});
  EXPECT_EQ(first(),
            "step 0, micro-batch 1, backward of module `layers.10`: f64[2] differs in 1 of 2 elements; first at [0]: "
            "expected 2, got 9");
  pipeline["rank0"]["0/forward/0/1/layers.2"] = make_f64({2}, {1, 7});
  pipeline["rank1"]["0/forward/1/1/layers.10"] = make_f64({2}, {2, 7});
  EXPECT_EQ(first(),
            "step 0, micro-batch 1, forward of module `layers.2`: f64[2] differs in 1 of 2 elements; first at [1]: "
            "expected 1, got 7");
  pipeline["rank1"].erase("0/forward/1/0/head");
  EXPECT_EQ(first(), "step 0, micro-batch 0, forward of module `head`: f64[2] is missing");
}

TEST_F(Recordings, AListOfModulesGoesBeforeStagesAndNames) {
  record("alone", kLayers, 0);
  record("pipeline", kLayers, 4);
  for (const char* name : {"embed", "layers.2", "layers.10"})
    files_["pipeline"]["rank0"]["0/forward/0/0/" + std::string(name)] = make_f64({2}, {8, 8});
  EXPECT_NE(first().find("`embed`"), std::string::npos);
  write_file(folder_ / "alone" / "recording.json",
             R"({"schema": "plumbline-recording/1", "modules": ["layers.10", "embed"]})");
  EXPECT_NE(first().find("`layers.10`"), std::string::npos);
}

TEST_F(Recordings, WhatIsNoRecordingIsRefusedInOneLine) {
  EXPECT_NE(refusal().find("no folder"), std::string::npos);
  fs::create_directories(folder_ / "pipeline");
  EXPECT_NE(refusal().find("nothing was recorded"), std::string::npos);
  record("alone", kLayers, 0);
  record("pipeline", kLayers, 2);
  write();
  EXPECT_EQ(refusal(), "");
  write_file(folder_ / "alone" / "recording.json", R"({"schema": "plumbline-recording/2", "modules": []})");
  EXPECT_NE(refusal().find("plumbline-recording/1"), std::string::npos);
  fs::remove(folder_ / "alone" / "recording.json");
  write_file(folder_ / "alone" / "rank1.safetensors", "short");
  EXPECT_NE(refusal().find("rank1.safetensors: truncated"), std::string::npos);
  write_tensor_file(folder_ / "alone" / "rank1.safetensors", {{"0/grad/-/-/embed.weight", make_f64({}, {5})}});
  EXPECT_NE(refusal().find("disagree on 0/grad/-/-/embed.weight"), std::string::npos);
}

}  // namespace
}  // namespace plumbline
