#include "bench/history/changes.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "bench/history/testing/sample_runs.h"

namespace plumbline::bench {
namespace {

using testing::timed;

std::vector<FigureChange> changes_of_each_kind() {
  return {
      {"a <b>", timed({1}), {.change = Change::Unchanged, .before = 0.012, .after = 0.012}},
      {"a <b>", timed({1}, "rate"), {.change = Change::Improved, .before = 0.002, .after = 0.001, .ratio = 0.5}},
      {"c",
       testing::counted({17}),
       {.change = Change::Regressed, .before = 0, .after = 17, .ratio = HUGE_VAL},
       Since{"78e0ff5", "2026-11-25T03:09:46Z", 3, true}},
      {"c",
       timed({1}),
       {.change = Change::Regressed, .before = 1, .after = 1.05, .ratio = 1.05},
       Since{"78e0ff5", "2026-11-25T03:09:46Z", 1, false}},
      {"c", timed({1}, "x"), {.change = Change::CannotTell, .before = 1, .after = 2, .ratio = 2, .reason = "too few"}},
      {"d", timed({1}, "y"), {.change = Change::CannotTell, .before = 1, .after = 2, .ratio = 2, .reason = "too few"}},
  };
}

TEST(Changes, TextIsQuietAboutWhatIsAsBefore) {
  EXPECT_EQ(
      changes_text(changes_of_each_kind(), false),
      "regressed   c allocations: 0 allocations -> 17 allocations, since 78e0ff5 of 2026-11-25, 3 runs\n"
      "regressed   c step: 1 s -> 1.05 s (+5.0 %), since 78e0ff5 of 2026-11-25; in one run only: measure again to "
      "confirm it\n"
      "improved    a <b> rate: 2 ms -> 1 ms (-50.0 %)\n"
      "cannot tell 2 figures: too few\n"
      "2 regressed, 1 improved, 1 unchanged, 2 not told\n");
  const std::string all = changes_text(changes_of_each_kind(), true);
  EXPECT_NE(all.find("unchanged   a <b> step: 12 ms -> 12 ms (+0.0 %)\n"), std::string::npos) << all;
  EXPECT_NE(all.find("cannot tell c x: 1 s -> 2 s (+100.0 %); too few\n"), std::string::npos) << all;
  EXPECT_EQ(changes_text({}, false), "no figures\n");
}

TEST(Changes, ExitCodes) {
  std::vector<FigureChange> changes = changes_of_each_kind();
  EXPECT_EQ(exit_code(changes), 1);
  std::erase_if(changes, [](const FigureChange& change) { return change.judgement.change == Change::Regressed; });
  EXPECT_EQ(exit_code(changes), 0);
  std::erase_if(changes, [](const FigureChange& change) { return change.judgement.change != Change::CannotTell; });
  EXPECT_EQ(exit_code(changes), 3);
  EXPECT_EQ(exit_code({}), 3);
}

TEST(Changes, JUnitNeverShowsAsPassedWhatIsNotKnown) {
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(changes_junit(changes_of_each_kind()).c_str()));
  const auto text = [&](const char* path) { return std::string(document.select_node(path).attribute().value()); };
  EXPECT_EQ(document.select_nodes("//testsuite").size(), 3u);
  EXPECT_EQ(document.select_nodes("//testcase").size(), 6u);
  EXPECT_EQ(text("//testsuite[@name='c']/@failures"), "2");
  EXPECT_EQ(text("//testsuite[@name='c']/@skipped"), "1");
  EXPECT_EQ(text("//testsuite[@name='a <b>']/@failures"), "0");
  EXPECT_EQ(text("//testcase[@name='x']/skipped/@message"), "too few");
  EXPECT_NE(text("//testcase[@name='allocations']/failure/@message").find("0 allocations -> 17"), std::string::npos);
  EXPECT_EQ(document.select_nodes("//testcase[not(*)]").size(), 2u);
}

TEST(Changes, JsonHasNoNumberThatJsonLacks) {
  const auto json = nlohmann::json::parse(changes_json(changes_of_each_kind()));
  EXPECT_EQ(json.size(), 6u);
  EXPECT_TRUE(json[2]["ratio"].is_null());
  EXPECT_EQ(json[2]["since"]["commit"], "78e0ff5");
  EXPECT_EQ(json[3]["since"]["confirmed"], false);
  EXPECT_TRUE(json[0]["since"].is_null());
}

TEST(Changes, ValuesHaveUnitsForPeople) {
  EXPECT_EQ(value_text(0.0123, "s"), "12.3 ms");
  EXPECT_EQ(value_text(9.25e-8, "s"), "92.5 ns");
  EXPECT_EQ(value_text(3 << 20, "bytes"), "3 MiB");
  EXPECT_EQ(value_text(12, "bytes"), "12 bytes");
  EXPECT_EQ(value_text(5127836, "instructions"), "5127836 instructions");
  EXPECT_EQ(value_text(1.0313, "1"), "1.0313");
}

}  // namespace
}  // namespace plumbline::bench
