// The kill matrix as data: survivors, killers, and its files.
#include "conformance/mutants/kill_matrix.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/testing/refusal.h"

namespace plumbline::conformance {
namespace {

/// Two runs of case a, one of b, one of c.
KillMatrix matrix() {
  using enum Kill;
  KillMatrix m;
  m.runs = {{"a", "gpipe", 2}, {"a", "1f1b", 4}, {"b", "gpipe", 2}, {"c", "zb-v", 2}};
  m.rows = {{"lost", "It is lost.", {Fail, Untested, Timeout, Survived}, {{0, "first"}}},
            {"late", "It is late.", {Error, Fail, NotApplicable, NeverHappened}, {}},
            {"lively", "It lives.", {Survived, Survived, Survived, NotApplicable}, {}}};
  return m;
}

TEST(KillMatrix, SaysWhoSurvivesAndWhoIsNeeded) {
  EXPECT_EQ(survivors(matrix()), std::vector<std::string>{"lively"});
  EXPECT_EQ(killed_by_one_case(matrix()), std::vector<std::string>{"late"});
  EXPECT_EQ(cases_that_kill_nothing(matrix()), std::vector<std::string>{"c"});
}

TEST(KillMatrix, ItsTextHasARowForEachMutantAndAColumnForEachCase) {
  const std::string text = matrix_text(matrix());
  EXPECT_NE(text.find("lost    X  T  s\n"), std::string::npos) << text;
  EXPECT_NE(text.find("late    E  -  o\n"), std::string::npos) << text;
  EXPECT_NE(text.find("lively  s  s  -\n"), std::string::npos) << text;
  EXPECT_NE(text.find("2 of 3 mutants are killed\nsurvivors: lively\n"), std::string::npos) << text;
}

TEST(KillMatrix, KillersAreOfDifferentCasesWhereThereAreSuch) {
  const Killers killers = killers_of(matrix());
  EXPECT_EQ(killers.at("lost"),
            (std::vector<Killer>{{{"a", "gpipe", 2}, Kill::Fail}, {{"b", "gpipe", 2}, Kill::Timeout}}));
  EXPECT_EQ(killers.at("late"),
            (std::vector<Killer>{{{"a", "gpipe", 2}, Kill::Error}, {{"a", "1f1b", 4}, Kill::Fail}}));
  EXPECT_TRUE(killers.at("lively").empty());
}

TEST(KillMatrix, KillersAreReadAsTheyWereWritten) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "killers.json";
  write_killers(path, killers_of(matrix()));
  EXPECT_EQ(read_killers(path), killers_of(matrix()));
  std::ofstream(path) << R"({"lost": [{"case": "a", "schedule": "gpipe", "ranks": 2, "by": "luck"}]})";
  testing::expect_part(testing::refusal([&] { read_killers(path); }), "lost[0].by");
}

TEST(KillMatrix, TheReportHoldsEveryCell) {
  const TemporaryFolder folder;
  KillMatrix m = matrix();
  m.broken[3] = "a reason";
  write_matrix(folder.path(), m);
  std::ifstream in(folder / "kill-matrix.json");
  const nlohmann::json json = nlohmann::json::parse(in);
  EXPECT_EQ(json["runs"].size(), 4U);
  EXPECT_EQ(json["mutants"][0]["cells"], nlohmann::json({"fail", "untested", "timeout", "survived"}));
  EXPECT_EQ(json["mutants"][0]["reasons"][0]["reason"], "first");
  EXPECT_EQ(json["broken"][0]["run"], 3);
  EXPECT_EQ(json["survivors"][0], "lively");
  EXPECT_TRUE(std::filesystem::exists(folder / "kill-matrix.txt"));
}

}  // namespace
}  // namespace plumbline::conformance
