#include "runtime/split/io/program_files.h"
#include "runtime/io/write_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/error.h"
#include "runtime/graph/run/program.h"
#include "runtime/io/json_place.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/io/tensor_file.h"
#include "runtime/split/io/pipe_json.h"
#include "runtime/testing/small_pipes.h"

namespace plumbline::split {
namespace {

namespace fs = std::filesystem;

class ProgramFiles : public ::testing::Test {
 protected:
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

  void expect_refused(const std::string& file, const std::string& why) const {
    try {
      read_pipe(folder_);
      ADD_FAILURE() << "accepted, instead of: " << why;
    } catch (const InputError& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find((folder_ / file).string()), std::string::npos) << what;
      EXPECT_NE(what.find(why), std::string::npos) << what;
      EXPECT_EQ(what.find('\n'), std::string::npos) << what;
    }
  }

  const TemporaryFolder root_;
  const fs::path folder_ = root_ / "deep" / "program";
};

TEST_F(ProgramFiles, APipeComesBackAndRunsBitForBit) {
  at::manual_seed(4);
  const Pipe pipe = testing::three_stage_pipe();
  write_pipe(pipe, folder_);
  EXPECT_EQ(files(), (std::vector<std::string>{"program.json", "stage0.safetensors", "stage1.safetensors",
                                               "stage2.safetensors"}));
  const Pipe again = read_pipe(folder_);
  const auto all = [](int) { return true; };
  EXPECT_EQ(to_json(again, all), to_json(pipe, all));
  for (int s = 0; s < 3; ++s) {
    const auto& before = pipe.stages[s].graph.attributes;
    const auto& after = again.stages[s].graph.attributes;
    ASSERT_EQ(before.size(), after.size());
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_TRUE(at::equal(before[i].tensor, after[i].tensor)) << before[i].name;
      EXPECT_EQ(before[i].tensor.requires_grad(), after[i].tensor.requires_grad()) << before[i].name;
    }
  }
  std::vector<at::Tensor> expected, actual;
  const std::vector<at::Tensor> inputs = {at::randn({2, 3}), at::randn({2, 3})};
  graph::Program(pipe.stages[2].graph).run(inputs, expected);
  graph::Program(again.stages[2].graph).run(inputs, actual);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(at::equal(actual[i], expected[i]));
}

TEST_F(ProgramFiles, TensorsAreNamedAsInTheModel) {
  write_pipe(testing::three_stage_pipe(), folder_);
  const auto names = [&](const char* file) {
    std::vector<std::string> keys;
    for (const auto& [key, tensor] : read_tensor_file(folder_ / file)) keys.push_back(key);
    return keys;
  };
  EXPECT_EQ(names("stage0.safetensors"), (std::vector<std::string>{"block.w", "unused"}));
  EXPECT_EQ(names("stage1.safetensors"), (std::vector<std::string>{"constant/scale", "transient/mean"}));
  EXPECT_EQ(names("stage2.safetensors"), std::vector<std::string>{"block.w"});
}

TEST_F(ProgramFiles, AShorterPipeReplacesALongerOne) {
  write_pipe(testing::three_stage_pipe(), folder_);
  Pipe one;
  one.stages.push_back(testing::three_stage_pipe().stages[0]);
  one.stages[0].outputs.clear();
  write_pipe(one, folder_);
  EXPECT_EQ(files(), (std::vector<std::string>{"program.json", "stage0.safetensors"}));
  EXPECT_EQ(read_pipe(folder_).num_stages(), 1);
}

TEST_F(ProgramFiles, ErrorsNameTheFile) {
  EXPECT_THROW(read_pipe(folder_), InputError);
  const auto fresh = [&] { write_pipe(testing::three_stage_pipe(), folder_); };
  fresh();
  fs::remove(folder_ / "program.json");
  expect_refused("program.json", "cannot read");
  fresh();
  fs::remove(folder_ / "stage1.safetensors");
  expect_refused("stage1.safetensors", "cannot read");
  fresh();
  fs::resize_file(folder_ / "stage0.safetensors", 40);
  expect_refused("stage0.safetensors", "truncated");
  fresh();
  fs::copy_file(folder_ / "stage0.safetensors", folder_ / "stage2.safetensors", fs::copy_options::overwrite_existing);
  expect_refused("stage2.safetensors", "an entry for the tensor `unused`");
  fresh();
  fs::copy_file(folder_ / "stage2.safetensors", folder_ / "stage0.safetensors", fs::copy_options::overwrite_existing);
  expect_refused("stage0.safetensors", "tensors[0][1].data: expected the name of a tensor that came with it");
  fresh();
  write_file(folder_ / "program.json", "{\"pipe\": ");
  expect_refused("program.json", "is not JSON");
  fresh();
  nlohmann::json json = parse_json(read_file(folder_ / "program.json"), "p");
  json["tensors"][0][0]["sizes"] = {9};
  write_file(folder_ / "program.json", json.dump());
  expect_refused("program.json", "tensors[0][0]: expected the dtype and shape of the data, f32[3,3]");
  json["pipe"]["format"] = "plumbline-pipe/9";
  write_file(folder_ / "program.json", json.dump());
  expect_refused("program.json", "pipe.format: expected \"plumbline-pipe/1\"");
}

TEST_F(ProgramFiles, AFolderThatCannotBeMadeIsRefused) {
  write_file(root_ / "file", "");
  EXPECT_THROW(write_pipe(testing::three_stage_pipe(), root_ / "file" / "program"), InputError);
}

}  // namespace
}  // namespace plumbline::split
