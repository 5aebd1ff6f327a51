#include "conformance/export/check_export.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "conformance/corpus/corpus.h"
#include "conformance/export/export_corpus.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/io/tensor_file.h"
#include "runtime/io/write_file.h"
#include "runtime/testing/refusal.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;

class CheckExport : public ::testing::Test {
 protected:
  void SetUp() override {
    export_cases({.cases = {find_case("exact-mlp-sum"), find_case("exact-tied"), find_case("exact-dp-mlp")},
                  .schedules = {ChosenSchedule{"gpipe", ""}},
                  .ranks = 2,
                  .expected = true,
                  .out = folder_.path()},
                 [](const ExportedCase&) {});
  }
  fs::path file(const std::string& name) const { return folder_ / "exact-mlp-sum" / "gpipe-2" / name; }

  /// The only problem if the file has these bytes; restores the file afterwards.
  std::string problem_of(const std::string& name, const std::string& bytes) const {
    const std::string before = read_file(file(name));
    write_file(file(name), bytes);
    const ExportCheck check = check_export(folder_.path());
    write_file(file(name), before);
    EXPECT_EQ(check.problems.size(), 1u) << name;
    return check.problems.empty() ? "accepted" : check.problems.front();
  }
  std::string replaced(const std::string& name, const std::string& from, const std::string& to) const {
    std::string text = read_file(file(name));
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << name << " has no " << from;
    return text.replace(at, from.size(), to);
  }
  std::string with_tensors(const std::function<void(TensorMap&)>& change) const {
    TensorMap tensors = read_tensor_file(file("tensors.safetensors"));
    change(tensors);
    return encode_tensors(tensors);
  }

  const TemporaryFolder folder_;
};

TEST_F(CheckExport, AnExportIsAccepted) {
  const ExportCheck check = check_export(folder_.path());
  EXPECT_TRUE(check.problems.empty()) << check.problems.front();
  EXPECT_EQ(check.cases, 3u);
  EXPECT_EQ(check.files, 18u);
}

TEST_F(CheckExport, AScheduleFromAFileIsNamedWithoutItsFolder) {
  std::set<std::string> forms;  // the texts of case.json
  for (const char* path : {"/some/where/mine.csv", "mine.csv"}) {
    const TemporaryFolder folder;
    export_cases({.cases = {find_case("exact-mlp-sum")},
                  .schedules = {ChosenSchedule{path, read_file(file("schedule.csv"))}},
                  .ranks = 2,
                  .out = folder.path()},
                 [](const ExportedCase& c) { EXPECT_EQ(c.refused, ""); });
    const ExportCheck check = check_export(folder.path());
    EXPECT_TRUE(check.problems.empty()) << check.problems.front();
    forms.insert(read_file(folder / "exact-mlp-sum/mine-2/case.json"));
  }
  ASSERT_EQ(forms.size(), 1u) << "the same form, wherever the file is";
  EXPECT_EQ(nlohmann::json::parse(*forms.begin())["schedule"]["name"], "mine");
}

TEST_F(CheckExport, EveryChangeIsNamedInOneLine) {
  const std::string tensors = "tensors.safetensors", weight = "parameter/layers.0.fc.weight";
  const std::string good = read_file(file(tensors));
  std::string four_gib = good;
  four_gib.replace(0, 8, std::string("\0\0\0\0\1\0\0\0", 8));
  const auto nan = [](TensorMap& all) { all.at("step/0/input/x") = make_f64({1}, {std::nan("")}); };
  struct Change {
    std::string name, bytes, expected;
  };
  for (const Change& change : std::vector<Change>{
           {"case.json", "", "not JSON"},
           {"case.json", "[]", "expected an object"},
           {"case.json", replaced("case.json", "plumbline-case/1", "plumbline-case/2"), "reads plumbline-case/1, not"},
           {"case.json", replaced("case.json", "\"reduction\":\"sum\"", "\"reduction\":\"mean\""), "has "},
           {"case.json", replaced("case.json", "\"exact\"", "\"exacT\""), "changed since the export"},
           {"program.json", replaced("program.json", "\"opset\": 1", "\"opset\": 2"), "opset: expected"},
           {"program.json", replaced("program.json", "{", "["), "not JSON"},
           {"schedule.csv", "0F0,zero\r\n", "zero"},
           {"expected.json", replaced("expected.json", "expected/1", "expected/9"), "reads plumbline-expected/1"},
           {"expected.safetensors", good, "manifest.json"},
           {tensors, good.substr(0, good.size() / 2), "truncated"},
           {tensors, four_gib, "header length 4294967296"},
           {tensors, with_tensors([&](TensorMap& all) { all.erase(weight); }), weight + " is missing"},
           {tensors, with_tensors([&](TensorMap& all) { all.at(weight) = make_f64({1}, {1}); }),
            "is f64[1], but f32[8,8]"},
           {tensors, with_tensors([&](TensorMap& all) { all["more"] = make_f64({1}, {1}); }), "in manifest.json"},
           {tensors, with_tensors(nan), "in manifest.json"},
       })
    testing::expect_line(problem_of(change.name, change.bytes), file(change.name).string(), change.expected);
}

TEST_F(CheckExport, MissingAndSurplusFilesAreNamed) {
  fs::rename(file("schedule.csv"), file("other.csv"));
  const ExportCheck check = check_export(folder_.path());
  ASSERT_EQ(check.problems.size(), 2u);
  EXPECT_EQ(check.problems[0], file("schedule.csv").string() + ": does not exist");
  EXPECT_EQ(check.problems[1], file("other.csv").string() + ": is not in manifest.json");
}

TEST_F(CheckExport, ACaseThatIsNotInTheManifestAndALinkAreNamed) {
  fs::copy(folder_ / "exact-mlp-sum", folder_ / "exact-other", fs::copy_options::recursive);
  write_file(folder_ / "README", "of a user");
  EXPECT_EQ(check_export(folder_.path()).problems,
            std::vector{(folder_ / "exact-other/gpipe-2/case.json").string() + ": is not in manifest.json"});
  fs::remove_all(folder_ / "exact-other");
  fs::rename(file("program.json"), folder_ / "program.json");
  fs::create_symlink(folder_ / "program.json", file("program.json"));
  EXPECT_EQ(check_export(folder_.path()).problems, std::vector{"cannot read " + file("program.json").string() +
                                                               ": it is a symbolic link; expected a regular file"});
}

TEST_F(CheckExport, AManifestOfNoCaseAndOneWithACaseTwiceAreRefused) {
  nlohmann::json manifest = nlohmann::json::parse(read_file(folder_ / "manifest.json"));
  manifest["cases"].push_back(manifest["cases"][0]);
  write_file(folder_ / "manifest.json", manifest.dump());
  testing::expect_line(testing::refusal([&] { check_export(folder_.path()); }),
                       (folder_ / "manifest.json").string() + ": cases[3].folder", "appears twice");
  manifest["cases"] = nlohmann::json::array();
  write_file(folder_ / "manifest.json", manifest.dump());
  testing::expect_line(testing::refusal([&] { check_export(folder_.path()); }),
                       (folder_ / "manifest.json").string() + ": cases", "expected at least one case");
}

TEST_F(CheckExport, AManifestThatDescribesACaseOtherwiseIsNamed) {
  const std::string good = read_file(folder_ / "manifest.json"), of_case = file("case.json").string() + ": ";
  for (const auto& [member, value, expected] : std::vector<std::tuple<const char*, nlohmann::json, std::string>>{
           {"id", "exact-mlp-mean", R"(id: is "exact-mlp-sum", but "exact-mlp-mean")"},
           {"truth", "bounded", R"(truth: is "exact", but "bounded")"},
           {"schedule", "1f1b", R"(schedule.name: is "gpipe", but "1f1b")"},
           {"ranks", 3, "mesh: has 2 ranks, but 3"},
           {"stages", 4, "stages: is 2, but 4"},
       }) {
    nlohmann::json manifest = nlohmann::json::parse(good);
    manifest["cases"][0][member] = value;
    write_file(folder_ / "manifest.json", manifest.dump());
    EXPECT_EQ(check_export(folder_.path()).problems, std::vector{of_case + expected + " in manifest.json"});
  }
  nlohmann::json manifest = nlohmann::json::parse(good);
  manifest["seed"] = 2;
  write_file(folder_ / "manifest.json", manifest.dump());
  EXPECT_EQ(check_export(folder_.path()).problems.front(), of_case + "seed: is 1, but 2 in manifest.json");
}

TEST_F(CheckExport, AManifestThatLeadsElsewhereIsRefused) {
  const fs::path path = folder_ / "manifest.json";
  const std::string good = read_file(path);
  for (const auto& [from, to, expected] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"manifest/1", "manifest/2",
            "format: this plumbline reads plumbline-manifest/1, not 'plumbline-manifest/2'"},
           {"exact-mlp-sum/gpipe-2", "../elsewhere", "cases[0].folder: '../elsewhere' is not a path inside the folder"},
           {"exact-mlp-sum/gpipe-2", "/etc", "is not a path inside the folder"},
           {"\"case.json\"", "\"../case.json\"", "is not a path inside the folder"},
           {"\"case.json\"", "\"kase.json\"", "a case without case.json"},
       }) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    write_file(path, text);
    testing::expect_line(testing::refusal([&] { check_export(folder_.path()); }), path.string() + ":", expected);
  }
}

}  // namespace
}  // namespace plumbline::conformance
