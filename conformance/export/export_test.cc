#include "conformance/export/export_corpus.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "conformance/corpus/corpus.h"
#include "conformance/export/export_case.h"
#include "conformance/export/opset.h"
#include "conformance/protocol/report_folder.h"
#include "conformance/run/export_job.h"
#include "reference/models/zoo.h"
#include "runtime/graph/host_tensors.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/io/tensor_file.h"
#include "runtime/io/write_file.h"
#include "runtime/testing/refusal.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;
using UnorderedJson = nlohmann::json;

schedule::Schedule gpipe(const reference::Case& c, int ranks) {
  return make_schedule(ChosenSchedule{"gpipe", ""}, ranks, c.microbatches);
}

UnorderedJson read(const fs::path& path) { return UnorderedJson::parse(read_file(path)); }

TEST(Opset, IsSortedForItsLookup) {
  for (size_t i = 1; i < opset().size(); ++i) EXPECT_LT(opset()[i - 1].name, opset()[i].name);
  for (const OpsetEntry& entry : opset()) EXPECT_EQ(find_in_opset(entry.name), &entry);
  EXPECT_EQ(find_in_opset("aten::nothing"), nullptr);
}

TEST(ExportCase, TheSameBytesEachTime) {
  const reference::Case& c = find_case("dropout");
  const TemporaryFolder folder;
  export_case(c, gpipe(c, 2), 1, folder / "a");
  export_case(c, gpipe(c, 2), 1, folder / "b");
  export_case(c, gpipe(c, 2), 2, folder / "c");
  for (const char* file : {"case.json", "program.json", "schedule.csv", "tensors.safetensors"})
    EXPECT_EQ(read_file(folder / "a" / file), read_file(folder / "b" / file)) << file;
  EXPECT_NE(read_file(folder / "a" / "tensors.safetensors"), read_file(folder / "c" / "tensors.safetensors"));
}

TEST(ExportCase, AProgramForEachShapeAndMode) {
  // 10 rows over 4 micro-batches: 3, 3, 2, 2.
  const reference::Case& uneven = find_case("uneven-mean");
  const TemporaryFolder folder;
  export_case(uneven, gpipe(uneven, 2), 1, folder.path());
  const UnorderedJson c = read(folder / "case.json"), program = read(folder / "program.json");
  EXPECT_EQ(program["programs"].size(), 2u);
  std::vector<int> programs;
  double weights = 0;
  for (const UnorderedJson& microbatch : c["steps"][0]["microbatches"]) {
    programs.push_back(microbatch["program"]);
    weights += microbatch["loss_weight"].get<double>();
  }
  EXPECT_EQ(programs, (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(c["steps"][0]["microbatches"][0]["loss_weight"], 1.2);
  EXPECT_DOUBLE_EQ(weights, 4.0);

  const reference::Case& evaluated = find_case("resnet-bn-eval");
  export_case(evaluated, gpipe(evaluated, 2), 1, folder.path());
  std::set<bool> modes;
  const UnorderedJson of_both = read(folder / "program.json");
  for (const UnorderedJson& p : of_both["programs"]) modes.insert(p["training"].get<bool>());
  EXPECT_EQ(modes, (std::set<bool>{false, true}));
}

TEST(ExportCase, ParametersHaveTheirStateBeforeTheFirstStep) {
  const reference::Case& c = find_case("exact-freeze-first");  // trains, then freezes half of its layers
  const TemporaryFolder folder;
  export_case(c, gpipe(c, 4), 1, folder.path());
  const UnorderedJson program = read(folder / "program.json");
  for (const UnorderedJson& parameter : program["parameters"])
    EXPECT_EQ(parameter["requires_grad"], true) << parameter["name"];
  const auto first = [&](int p) { return program["programs"][p]["boundaries"][0]["has_gradient"].get<bool>(); };
  EXPECT_TRUE(first(0));
  EXPECT_FALSE(first(1));
}

TEST(ExportCase, MasksAreInputsOfTheStagesThatUseThem) {
  const reference::Case& c = find_case("dropout");
  const TemporaryFolder folder;
  export_case(c, gpipe(c, 2), 1, folder.path());
  const TensorMap tensors = read_tensor_file(folder / "tensors.safetensors");
  const UnorderedJson program = read(folder / "program.json");
  int masks = 0;
  for (int stage = 0; stage < 2; ++stage)
    for (const UnorderedJson& input : program["programs"][0]["stages"][stage]["inputs"]) {
      if (input["from"] != "mask") continue;
      ++masks;
      for (int m = 0; m < c.microbatches; ++m) {
        const std::string key =
            "step/0/mask/" + std::to_string(stage) + "/" + std::to_string(m) + "/" + input["name"].get<std::string>();
        ASSERT_TRUE(tensors.contains(key)) << key;
        std::set<double> values;
        for (int64_t i = 0; i < element_count(tensors.at(key)); ++i)
          values.insert(element_as_double(tensors.at(key), i));
        EXPECT_EQ(values, (std::set<double>{0.0, static_cast<double>(1.0f / 0.75f)})) << key;
      }
    }
  EXPECT_EQ(masks, 8);
}

/// By stage: its inputs and outputs in a program, each "name" or "name=None".
std::vector<std::string> ports(const UnorderedJson& program) {
  std::vector<std::string> stages;
  for (const UnorderedJson& stage : program["stages"]) {
    std::string text;
    for (const char* side : {"inputs", "outputs"})
      for (const UnorderedJson& port : stage[side])
        text += port["name"].get<std::string>() + (port["value"].is_null() ? "=None " : " ");
    stages.push_back(text);
  }
  return stages;
}

TEST(ExportCase, NoneHasItsPlaceInEachProgram) {
  const reference::Case& mask = find_case("exact-optional-mask");  // a mask in the first step, None in the second
  const TemporaryFolder folder;
  export_case(mask, gpipe(mask, 2), 1, folder.path());
  const UnorderedJson programs = read(folder / "program.json")["programs"];
  ASSERT_EQ(programs.size(), 2u);
  EXPECT_EQ(ports(programs[0]), (std::vector<std::string>{"x mask mask parts.3 ", "mask parts.3 0 "}));
  EXPECT_EQ(ports(programs[1]), (std::vector<std::string>{"x mask=None mask=None parts.3 ", "mask=None parts.3 0 "}));
  EXPECT_EQ(programs[0]["boundaries"].size(), 2u);
  EXPECT_EQ(programs[1]["boundaries"].size(), 1u) << "None crosses nothing";

  const reference::Case& absent =
      find_case("exact-absent-value-first");  // an evaluation, then a step that sends one more value
  export_case(absent, gpipe(absent, 2), 1, folder.path());
  const UnorderedJson of_both = read(folder / "program.json")["programs"];
  ASSERT_EQ(of_both.size(), 3u) << "the evaluation's rows do not divide evenly";
  EXPECT_EQ(ports(of_both[0]), (std::vector<std::string>{"x parts.3 mul=None ", "parts.3 mul=None 0 1=None "}));
  EXPECT_EQ(ports(of_both[2]), (std::vector<std::string>{"x parts.3 mul ", "parts.3 mul 0 1 "}));
}

TEST(ExportCase, ADictIsDescribedAndItsOutputsAreNamed) {
  const reference::Case& c = find_case("exact-dict");
  const TemporaryFolder folder;
  export_case(c, gpipe(c, 2), 1, folder.path());
  EXPECT_EQ(read(folder / "case.json")["outputs"],
            UnorderedJson::parse(R"({"hidden": "hidden", "logits": "logits", "absent": "absent",
                            "states": {"sums": "states.sums", "layers": ["states.layers.0"]}})"));
  std::string names;
  const UnorderedJson program = read(folder / "program.json");
  for (const UnorderedJson& output : program["programs"][0]["stages"][1]["outputs"])
    names += output["name"].get<std::string>() + (output["value"].is_null() ? "=None " : " ");
  EXPECT_EQ(names, "logits hidden absent=None states.layers.0 states.sums ")
      << "the output that the loss uses comes first";
  const reference::Case& plain = find_case("exact-multi-io");
  export_case(plain, gpipe(plain, 2), 1, folder.path());
  EXPECT_FALSE(read(folder / "case.json").contains("outputs"));
}

TEST(ExportCase, SeveralTargetsHaveTheNamesOfTheirOutputs) {
  const reference::Case& c = find_case("exact-heads");
  const TemporaryFolder folder;
  export_case(c, gpipe(c, 2), 1, folder.path());
  const UnorderedJson exported = read(folder / "case.json");
  EXPECT_EQ(exported["targets"], UnorderedJson::parse(R"({"scores": ["scores.0", "scores.1"], "boxes": "boxes"})"));
  EXPECT_EQ(exported["loss"]["outputs"], UnorderedJson::parse(R"(["boxes", "scores.0", "scores.1"])"));
  const TensorMap tensors = read_tensors(RegularFile(folder / "tensors.safetensors"));
  const Targets targets = models::make_batch(c, c.rows, 1, 0).targets;
  for (size_t i = 0; i < 3; ++i) {
    const std::string name = exported["loss"]["outputs"][i];
    EXPECT_EQ(tensors.at("step/0/target/" + name), graph::to_host(targets[i])) << name;
  }
  EXPECT_FALSE(tensors.contains("step/0/target"));

  const reference::Case& divided = find_case("exact-heads-divided");
  export_case(divided, gpipe(divided, 2), 1, folder.path());
  EXPECT_TRUE(read_tensors(RegularFile(folder / "tensors.safetensors")).contains("step/0/target/scores.1/3"));
}

TEST(ExportCase, OneSharedParameterAndAllItsStages) {
  const reference::Case& c = find_case("exact-tied");
  const TemporaryFolder folder;
  export_case(c, gpipe(c, 4), 1, folder.path());
  const TensorMap tensors = read_tensor_file(folder / "tensors.safetensors");
  const UnorderedJson program = read(folder / "program.json");
  for (const UnorderedJson& parameter : program["parameters"]) {
    EXPECT_TRUE(tensors.contains("parameter/" + parameter["name"].get<std::string>()));
    if (parameter["name"] == "tok.weight") {
      EXPECT_EQ(parameter["stages"], UnorderedJson({0, 3}));
    }
  }
}

/// A full disk, for one: no case is called refused for it, here or in a job.
TEST(Export, WhereAFileCannotBeWrittenItEnds) {
  const TemporaryFolder folder;
  write_file(folder / "exact-mlp-sum", "in the way of the case's folder");
  const ExportRequest request{
      .cases = {find_case("exact-mlp-sum")}, .schedules = {{"gpipe", ""}}, .ranks = 2, .out = folder.path()};
  EXPECT_THROW(export_cases(request, [](const ExportedCase&) { ADD_FAILURE() << "went on"; }), WriteError);
  JobCase item{"exact-mlp-sum", "gpipe"};
  const fs::path taken = exported_case(item).begin()->string();
  write_file(folder / taken, "likewise");
  BackendDescription backend;
  backend.schedules.reset();
  EXPECT_THROW(export_for_job(item, {.ranks = 2, .cases = {item}}, 0, backend, folder.path()), WriteError);
}

TEST(ExportCorpus, WritesAnIndexAndContinuesAfterARefusal) {
  const TemporaryFolder folder;
  // A model with only 7 split points cannot have 16 stages.
  const ExportRequest request{.cases = {find_case("exact-mlp-sum"), find_case("uneven-mean")},
                              .schedules = {{"gpipe", ""}, {"interleaved-1f1b", ""}},
                              .ranks = 3,
                              .expected = true,
                              .out = folder.path()};
  int reported = 0;
  const std::vector<ExportedCase> cases = export_cases(request, [&](const ExportedCase&) { ++reported; });
  EXPECT_EQ(reported, 4);
  const UnorderedJson manifest = read(folder / "manifest.json");
  EXPECT_EQ(manifest["cases"].size() + manifest["refused"].size(), 4u);
  EXPECT_GE(manifest["cases"].size(), 2u);
  for (const UnorderedJson& c : manifest["cases"])
    for (const auto& [name, file] : c["files"].items())
      EXPECT_EQ(read_file(folder.path() / c["folder"].get<std::string>() / name).size(), file["bytes"]) << name;
  EXPECT_TRUE(manifest["cases"][0]["files"].contains("expected.safetensors"));
}

TEST(ExportCorpus, TwoSchedulesWithOneFolderAreRefused) {
  const TemporaryFolder folder;
  const ExportRequest request{.cases = {find_case("exact-mlp-sum")},
                              .schedules = {{"gpipe", ""}, {"1f1b", ""}, {"mine/1f1b.csv", "0F0,0B0\n"}},
                              .out = folder / "out"};
  EXPECT_EQ(testing::refusal([&] { export_cases(request, [](const ExportedCase&) { ADD_FAILURE() << "went on"; }); }),
            "export: the schedules 1f1b and mine/1f1b.csv have the same folder, ID/1f1b-RANKS; rename the file");
  EXPECT_FALSE(fs::exists(request.out));
}

TEST(ExportCorpus, OneModelIsBuiltOnceToAskForItsStages) {
  const auto built = std::make_shared<int>(0);
  models::add_model(
      "counted-model",
      [built](reference::Dtype dtype, uint64_t seed) {
        ++*built;
        models::Model model = models::make_model("exact-mlp", dtype, seed);
        model.split_points.clear();
        model.fine_split_points.clear();
        return model;
      },
      [](reference::Dtype dtype, int rows, uint64_t seed, int step) {
        return models::make_batch("exact-mlp", dtype, rows, seed, step);
      });
  reference::Case c = find_case("exact-mlp-sum");
  c.model = "counted-model";
  const TemporaryFolder folder;
  const std::vector<ExportedCase> cases =
      export_cases({.cases = {c}, .schedules = {{"gpipe", ""}, {"1f1b", ""}}, .ranks = 2, .out = folder.path()},
                   [](const ExportedCase&) {});
  ASSERT_EQ(cases.size(), 2u);
  for (const ExportedCase& exported : cases)
    EXPECT_EQ(exported.refused, "0 split points, enough for 1 stages; the schedule has 2");
  EXPECT_EQ(*built, 1);
}

TEST(ExportCorpus, TheLockPinsMachineIndependentFiles) {
  ExportedCase exact{.id = "a", .folder = "a/gpipe-2", .files = {{"case.json", 1, "11", true}}};
  exact.files[0].sha256 = std::string(64, '1');
  exact.files.push_back({"expected.json", 1, std::string(64, '2'), false});
  const std::string lock = lock_text({exact});
  EXPECT_EQ(lock, std::string(64, '1') + "  a/gpipe-2/case.json\n");
  EXPECT_TRUE(lock_differences(lock, lock).empty());
  EXPECT_EQ(lock_differences("", lock), std::vector<std::string>{"a/gpipe-2/case.json is not in the lock file"});
  EXPECT_EQ(lock_differences(lock, ""),
            std::vector<std::string>{"a/gpipe-2/case.json is in the lock file but was not exported"});
  EXPECT_EQ(lock_differences(std::string(64, '3') + lock.substr(64), lock),
            std::vector<std::string>{"a/gpipe-2/case.json differs from the lock file"});
}

}  // namespace
}  // namespace plumbline::conformance
