#include "conformance/judge/verdict/waivers.h"

#include <gtest/gtest.h>

#include "runtime/io/temporary_folder.h"
#include "runtime/io/tensor_file.h"
#include "runtime/io/write_file.h"
#include "runtime/testing/refusal.h"

namespace plumbline::conformance {
namespace {

const std::vector<std::string> kIds = {"exact-mlp", "tied-lm", "tied-mlp"};
using namespace std::chrono_literals;
constexpr auto kToday = 2026y / 11 / 22;

std::string waiver_text(const std::string& change = "", const std::string& to = "") {
  std::string text =
      "schema = \"plumbline-waivers/1\"\n"
      "\n"
      "[[waiver]]\n"
      "case = \"tied-*\"\n"
      "schedule = \"zb-*\"\n"
      "when = { ranks = \">=4\", transport = \"mpi\", dtype = \"bf16\", version = \">=2.11, <2.15\" }\n"
      "expect = \"fail\"\n"
      "link = \"https://example.org/1\"\n"
      "reason = \"counted twice\"\n"
      "expires = 2026-11-22\n";
  if (!change.empty()) {
    const size_t at = text.find(change);
    EXPECT_NE(at, std::string::npos) << change;
    text.replace(at, change.size(), to);
  }
  return text;
}

Waivers waivers(const std::string& text, std::chrono::year_month_day day = kToday) {
  const TemporaryFolder folder;
  write_file(folder / "w.toml", text);
  return {read_waivers(folder / "w.toml", kIds), day};
}

Verdict unwaived(Status status) {
  Verdict v;
  v.run.case_id = "tied-lm";
  v.run.schedule = "zb-v";
  v.backend = "torch-pipelining";
  v.device = "cpu";
  v.dtype = "bf16";
  v.run.ranks = 4;
  v.run.transport = "mpi";
  v.finding.status = status;
  return v;
}

TEST(Waivers, TurnTheExpectedFailureAndThePassAndNothingElse) {
  using enum Status;
  const std::vector<std::pair<Status, Status>> outcomes = {{Fail, XFail},
                                                           {Pass, XPass},
                                                           {Error, Error},
                                                           {Timeout, Timeout},
                                                           {Mistrusted, Mistrusted},
                                                           {NotRun, NotRun},
                                                           {Skipped, Skipped},
                                                           {Unsupported, Unsupported}};
  for (const auto& [before, after] : outcomes) {
    Waivers some = waivers(waiver_text());
    const Verdict judged = some.applied(unwaived(before), "2.14.1+cpu");
    EXPECT_EQ(judged.finding.status, after) << status_name(before);
    EXPECT_EQ(judged.waiver.find("counted twice (https://example.org/1, until 2026-11-22)") != std::string::npos,
              before != after)
        << judged.waiver;
    EXPECT_EQ(judged.finding.reason.find("expects fail") != std::string::npos, before == after && is_failure(before));
    EXPECT_TRUE(some.unused().empty());
    EXPECT_TRUE(some.expired().empty());
  }
}

TEST(Waivers, ARaceMayPass) {
  const std::string text = waiver_text("expect = \"fail\"\n", "expect = \"fail\"\nrace = true\n");
  const auto judged = [&](Status status) { return waivers(text).applied(unwaived(status), "2.14"); };
  EXPECT_EQ(judged(Status::Fail).finding.status, Status::XFail);
  EXPECT_EQ(judged(Status::Pass).finding.status, Status::Pass);
  EXPECT_EQ(judged(Status::Pass).waiver, "");
  EXPECT_EQ(judged(Status::Error).finding.status, Status::Error);
  // A waiver that expects a failure of every run counts, in whichever order they come.
  const std::string one = "[[waiver]]", plain = waiver_text();
  const std::string other = text.substr(text.find(one)), after = plain.substr(plain.find(one));
  for (const std::string& both : {plain + other, text + after}) {
    EXPECT_EQ(waivers(both).applied(unwaived(Status::Pass), "2.14").finding.status, Status::XPass);
    EXPECT_EQ(waivers(both).applied(unwaived(Status::Fail), "2.14").finding.status, Status::XFail);
  }
}

TEST(Waivers, MayExpectASentence) {
  const std::string text =
      waiver_text("expect = \"fail\"\n", "expect = \"fail\"\nsays = [\"*got 3?\", \"*got -3.25*\"]\n");
  const auto judged = [&](const std::string& reason, Status status = Status::Fail) {
    Verdict v = unwaived(status);
    v.finding.reason = reason;
    return waivers(text).applied(v, "2.14").finding;
  };
  EXPECT_EQ(judged("expected 1, got -3.25 (2 more)").status, Status::XFail);
  EXPECT_EQ(judged("expected 1, got 31").status, Status::XFail);
  EXPECT_EQ(judged("", Status::Pass).status, Status::XPass);
  const Finding other = judged("expected 1, got -2.5");
  EXPECT_EQ(other.status, Status::Fail);
  EXPECT_NE(other.reason.find("w.toml:3 expects fail, and its sentence like *got 3? and 1 more"), std::string::npos)
      << other.reason;
  EXPECT_EQ(judged("got -3.25", Status::Error).status, Status::Error);
}

TEST(Waivers, HoldOnlyWhereTheirConditionsDo) {
  const auto status = [](const auto& change, const std::string& version = "2.14") {
    Verdict v = unwaived(Status::Fail);
    change(v);
    return waivers(waiver_text()).applied(v, version).finding.status;
  };
  EXPECT_EQ(status([](Verdict&) {}), Status::XFail);
  EXPECT_EQ(status([](Verdict&) {}, "2.11.0"), Status::XFail);
  EXPECT_EQ(status([](Verdict& v) { v.run.ranks = 8; }), Status::XFail);
  EXPECT_EQ(status([](Verdict&) {}, "2.15.0"), Status::Fail);
  EXPECT_EQ(status([](Verdict&) {}, "2.9"), Status::Fail);
  EXPECT_EQ(status([](Verdict&) {}, ""), Status::Fail);
  EXPECT_EQ(status([](Verdict& v) { v.run.ranks = 2; }), Status::Fail);
  EXPECT_EQ(status([](Verdict& v) { v.run.case_id = "exact-mlp"; }), Status::Fail);
  EXPECT_EQ(status([](Verdict& v) { v.run.schedule = "1f1b"; }), Status::Fail);
  EXPECT_EQ(status([](Verdict& v) { v.run.transport = "threads"; }), Status::Fail);
  EXPECT_EQ(status([](Verdict& v) { v.dtype = "f32"; }), Status::Fail);
}

TEST(Waivers, CasesAndSchedulesMayBeLists) {
  const auto status = [](const std::string& id, const std::string& schedule, const std::string& text) {
    Verdict v = unwaived(Status::Fail);
    v.run.case_id = id, v.run.schedule = schedule;
    return waivers(text).applied(v, "2.14").finding.status;
  };
  const std::string cases = waiver_text("\"tied-*\"", "[\"exact-mlp\", \"*-lm\"]");
  EXPECT_EQ(status("exact-mlp", "zb-v", cases), Status::XFail);
  EXPECT_EQ(status("tied-lm", "zb-v", cases), Status::XFail);
  EXPECT_EQ(status("tied-mlp", "zb-v", cases), Status::Fail);
  const std::string schedules = waiver_text("\"zb-*\"", "[\"gpipe\", \"*1f1b\"]");
  EXPECT_EQ(status("tied-lm", "gpipe", schedules), Status::XFail);
  EXPECT_EQ(status("tied-lm", "interleaved-1f1b", schedules), Status::XFail);
  EXPECT_EQ(status("tied-lm", "zb-v", schedules), Status::Fail);
}

TEST(Waivers, PastItsDateAWaiverIsItselfAFailure) {
  Waivers old = waivers(waiver_text(), 2026y / 11 / 23);
  EXPECT_TRUE(old.expired().empty()) << "nothing was judged yet";
  const Verdict judged = old.applied(unwaived(Status::Fail), "2.14");
  EXPECT_EQ(judged.finding.status, Status::Fail);
  EXPECT_NE(judged.finding.reason.find("w.toml:3 expired on 2026-11-22"), std::string::npos) << judged.finding.reason;
  ASSERT_EQ(old.expired().size(), 1u);
  EXPECT_NE(old.expired()[0].find("expired on 2026-11-22"), std::string::npos);
  EXPECT_EQ(waivers(waiver_text(), 2026y / 11 / 23).applied(unwaived(Status::Pass), "2.14").finding.status,
            Status::Pass);
}

TEST(Waivers, TheDateOfTheFileHoldsForWaiversWithoutOne) {
  const auto expires = [](const std::string& text) { return waivers(text).all().front().expires; };
  std::string text = waiver_text("\n\n", "\nexpires = 2026-12-31\n");
  EXPECT_EQ(expires(text), 2026y / 11 / 22);
  text.erase(text.rfind("expires"));
  EXPECT_EQ(expires(text), 2026y / 12 / 31);
}

TEST(Waivers, OneThatMatchesNothingIsListed) {
  Waivers some = waivers(waiver_text());
  Verdict other = unwaived(Status::Pass);
  other.run.case_id = "exact-mlp";
  some.applied(other, "2.14");
  ASSERT_EQ(some.unused().size(), 1u);
  EXPECT_NE(some.unused()[0].find("w.toml:3 (tied-* x zb-*)"), std::string::npos) << some.unused()[0];
}

TEST(Waivers, ManyThatMatchNothingAreListedInOneLine) {
  std::vector<Waiver> four(4, waivers(waiver_text()).all().front());
  for (size_t i = 0; i < four.size(); ++i) four[i].where = "w.toml:" + std::to_string(10 * i + 3);
  EXPECT_EQ(Waivers(four, 2026y / 1 / 1).unused(),
            (std::vector<std::string>{"4 of 4 waivers matched no case in this run: those at w.toml:3, 13, 23, 33"}));
  four.pop_back();
  EXPECT_EQ(Waivers(four, 2026y / 1 / 1).unused().size(), 3u);
}

TEST(Waivers, AreReadStrictly) {
  const std::vector<std::pair<std::string, std::string>> files = {
      {"schema = ", ":1: not TOML"},
      {"[", ":1: not TOML"},
      {waiver_text("\"zb-*\"", "\"zb-*"), ":5: not TOML"},
      {waiver_text("counted", "\xff"), ":9: not TOML"},
      {waiver_text("waivers/1", "waivers/2"),
       ":1: schema: expected \"plumbline-waivers/1\", not \"plumbline-waivers/2\""},
      {"", ":1: the key 'schema' is missing"},
      {"schema = \"plumbline-waivers/1\"\nwaiver = 3\n", ":2: waiver: expected a list of tables: [[waiver]], not 3"},
      {"schema = \"plumbline-waivers/1\"\n[[waivers]]\n",
       ":2: no key 'waivers' is known; expected one of schema, expires, waiver"},
      {waiver_text("case = \"tied-*\"\n", ""), ":3: waiver: the key 'case' is missing"},
      {waiver_text("tied-*", "nonesuch-*"), ":4: case: no case of the corpus matches 'nonesuch-*'"},
      {waiver_text("\"tied-*\"", "3"), ":4: case: expected a string that is not empty, not 3"},
      {waiver_text("\"tied-*\"", "[\"tied-*\",\n\"nonesuch\"]"), ":5: case: no case of the corpus matches 'nonesuch'"},
      {waiver_text("\"tied-*\"", "[]"), ":4: case: expected a list that is not empty, not an empty list"},
      {waiver_text("\"zb-*\"", "[\"zb-*\", 3]"), ":5: schedule: expected a string that is not empty, not 3"},
      {waiver_text("schedule", "schedules"), ":5: waiver: no key 'schedules' is known; nearest: schedule, "},
      {waiver_text("when = {", "when = 3 #"), ":6: when: expected a table, not 3"},
      {waiver_text("transport = \"mpi\"", "transport = \"tcp\""),
       ":6: transport: 'tcp' is unknown; expected one of threads, mpi, nccl"},
      {waiver_text("transport", "transports"),
       ":6: when: no key 'transports' is known; expected one of ranks, transport, "},
      {waiver_text("\">=4\"", "\"=>4\""),
       ":6: ranks: expected a condition such as 4, \"4\", \">=4\", \">=2.11, <2.15\", or a list of them, not \"=>4\""},
      {waiver_text("\">=4\"", "[4, [5]]"), ":6: ranks: expected a condition such as 4, "},
      {waiver_text("\">=4\"", "-4"), ":6: ranks: expected a condition such as 4, "},
      {waiver_text("<2.15", "<2.15 or so"), ":6: version: expected a condition such as 4, "},
      {waiver_text("\"fail\"", "\"skipped\""),
       ":7: expect: 'skipped' is unknown; expected one of fail, error, timeout, mistrusted"},
      {waiver_text("\"fail\"", "\"pass\""), ":7: expect: 'pass' is unknown"},
      {waiver_text("expect = \"fail\"\n", "expect = \"fail\"\nrace = 1\n"), ":8: race: expected true or false, not 1"},
      {waiver_text("link = \"https://example.org/1\"\n", ""), ":3: waiver: the key 'link' is missing"},
      {waiver_text("https://example.org/1", "later"), ":8: link: expected an address where the deviation is discussed"},
      {waiver_text("reason = \"counted twice\"\n", ""), ":3: waiver: the key 'reason' is missing"},
      {waiver_text("\"counted twice\"", "\"\""), ":9: reason: expected a string that is not empty"},
      {waiver_text("expires = 2026-11-22\n", ""), ":3: waiver: the key 'expires' is missing"},
      {waiver_text("2026-11-22", "\"2026-11-22\""), ":10: expires: expected a date without quotes"},
      {waiver_text("2026-11-22", "2026-02-30"), ":10: not TOML"},
      {waiver_text("\n\n", "\nexpires = 2026\n"), ":2: expires: expected a date without quotes"},
  };
  for (const auto& [text, expected] : files) {
    testing::expect_line(testing::refusal([&] { waivers(text); }), "", "w.toml" + expected);
  }
  EXPECT_EQ(waivers("schema = \"plumbline-waivers/1\"\n").all().size(), 0u);
  EXPECT_EQ(waivers(waiver_text("\">=4\"", "[2, \">=8\"]")).applied(unwaived(Status::Fail), "2.14").finding.status,
            Status::Fail);
}

TEST(Waivers, VersionsCompareByTheirNumbers) {
  const auto holds = [](const std::string& condition, const std::string& version) {
    std::string text = waiver_text("\">=2.11, <2.15\"", "\"" + condition + "\"");
    return waivers(text).applied(unwaived(Status::Fail), version).finding.status == Status::XFail;
  };
  EXPECT_TRUE(holds("2.15", "2.15.0+cpu"));
  EXPECT_TRUE(holds("==2.15.0", "2.15"));
  EXPECT_FALSE(holds("==2.15", "2.15.1"));
  EXPECT_TRUE(holds(">2.9", "2.10"));
  EXPECT_TRUE(holds("!=2.9", "2.10rc1"));
  EXPECT_TRUE(holds("<=2.10", "2.10rc1"));
  EXPECT_FALSE(holds(">0", "unknown"));
}

}  // namespace
}  // namespace plumbline::conformance
