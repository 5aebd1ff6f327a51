// What a run consists of: counted and compared with what the schedules and models say for themselves.
#include "conformance/plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <tuple>

#include "conformance/corpus/corpus.h"
#include "conformance/corpus/features.h"
#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/schedule/lowering/lower.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/testing/refusal.h"

namespace plumbline::conformance {
namespace {

/// Models of 16 stages, those of skips and batch normalisation by name.
class NamedModels : public ModelFacts {
 public:
  int most_stages(const std::string&, reference::Dtype) override { return 16; }
  bool has_buffers(const reference::Case& c) override { return c.model.find("bn") != std::string::npos; }
  void require_loss(const reference::Case& c) override {
    if (c.id == unfit) throw InputError("the loss of " + c.id + " does not fit");
  }
  std::vector<schedule::StageEdge> edges(const reference::Case& c, int stages) override {
    std::vector<schedule::StageEdge> edges = schedule::chain_edges(stages);
    if (c.id == "exact-skip" && stages > 2) edges.push_back({0, 2});
    return edges;
  }
  std::string why_not_partitioned(const reference::Case& c, int, const engine::RematOptions&) override {
    return c.id == "mlp" ? "" : "it cannot be partitioned";
  }

  std::string unfit = {};  ///< the case whose loss does not fit
};

RunPlan make_plan(const RunOptions& options, std::optional<int> processes = {}) {
  NamedModels models;
  return conformance::make_plan(options, models, processes);
}

using Row = std::tuple<std::string, std::string, int, TransportKind>;

Row row_of(const PlannedRun& run) {
  return {run.id.case_id, run.id.schedule, run.id.ranks, *transport_kind(run.id.transport)};
}

std::set<Row> rows(const RunPlan& plan, bool supported) {
  std::set<Row> out;
  for (const PlannedRun& run : plan.runs)
    if (run.unsupported.empty() == supported) out.insert(row_of(run));
  return out;
}

/// What core promises to show, said by the row's own words; kinds of schedules by name.
std::vector<std::string> promised_by(const Row& row) {
  const auto& [id, schedule, ranks, transport] = row;
  const std::string on = std::to_string(ranks) + " ranks", over = transport_name(transport);
  std::vector<std::string> words = {id + " " + on, id + " " + over, schedule + " " + on, schedule + " " + over};
  for (const std::string& feature : features_of(find_case(id))) words.push_back(feature + " x " + schedule);
  return words;
}

TEST(Plan, CoreShowsEveryPairThatItPromises) {
  RunOptions options;
  const RunPlan core = make_plan(options);
  options.selection.profile = "nightly";
  const RunPlan nightly = make_plan(options);
  const std::set<Row> all = rows(nightly, true), some = rows(core, true);
  std::set<std::string> wanted, shown;
  for (const Row& row : all)
    for (const std::string& word : promised_by(row)) wanted.insert(word);
  for (const Row& row : some) {
    EXPECT_TRUE(all.contains(row));
    for (const std::string& word : promised_by(row)) shown.insert(word);
  }
  EXPECT_EQ(shown, wanted);
  EXPECT_LE(some.size(), 5 * corpus().size());
}

TEST(Plan, TheProfileOfCasesShowsEachAndEveryFeatureUnderEverySchedule) {
  RunOptions options;
  const std::set<Row> core = rows(make_plan(options), true);
  options.selection.profile = "cases";
  const std::set<Row> some = rows(make_plan(options), true);
  const auto said_by = [](const std::set<Row>& of) {
    std::set<std::string> words;
    for (const auto& [id, schedule, ranks, transport] : of) {
      const std::string on = std::to_string(ranks) + " ranks", over = transport_name(transport);
      words.insert({id, schedule + " " + on, schedule + " " + over, on + " " + over});
      for (const std::string& feature : features_of(find_case(id))) words.insert(feature + " x " + schedule);
    }
    return words;
  };
  EXPECT_EQ(said_by(some), said_by(core));
  EXPECT_LT(some.size(), core.size() / 2);
}

/// Everything that some case and schedule make possible on a number of ranks is shown there: counted over all rows of
/// 1 to 8 ranks, asked for one by one.
TEST(Plan, TheProfileOfRanksGoesOnEachNumberOfThem) {
  RunOptions options;
  options.selection.profile = "ranks";
  const std::set<Row> some = rows(make_plan(options), true);
  const auto said_by = [](const Row& row) {
    const auto& [id, schedule, ranks, transport] = row;
    const std::string on = " on " + std::to_string(ranks);
    std::vector<std::string> words = {schedule + on, transport_name(transport) + on};
    for (const std::string& feature : features_of(find_case(id))) words.push_back(feature + on);
    return words;
  };
  std::set<std::string> wanted, shown;
  for (const Row& row : some)
    for (const std::string& word : said_by(row)) shown.insert(word);
  for (int ranks = 1; ranks <= 8; ++ranks) {
    RunOptions one;
    one.selection.profile = "nightly";
    one.selection.ranks = {ranks};
    for (const Row& row : rows(make_plan(one), true))
      for (const std::string& word : said_by(row)) wanted.insert(word);
    for (const char* feature : {"exact", "same-order", "none", "dicts", "shared", "uneven"})
      EXPECT_TRUE(shown.contains(std::string(feature) + " on " + std::to_string(ranks))) << feature << " on " << ranks;
  }
  EXPECT_EQ(shown, wanted);
  EXPECT_LE(some.size(), 2 * corpus().size());
}

TEST(Plan, CoreRunsEachCaseUnderSeveralSchedulesOrItsOwn) {
  std::map<std::string, std::set<std::string>> schedules;
  for (const Row& row : rows(make_plan({}), true)) schedules[std::get<0>(row)].insert(std::get<1>(row));
  for (const reference::Case& c : corpus()) {
    if (c.schedule_csv.empty())
      EXPECT_GE(schedules[c.id].size(), 2u) << c.id;
    else
      EXPECT_EQ(schedules[c.id], std::set<std::string>{"own"}) << c.id;
  }
}

TEST(Plan, ACaseWithAScheduleOfItsOwnRunsUnderThatAlone) {
  RunOptions options;
  options.selection.case_glob = "exact-own-three-ranks";
  EXPECT_EQ(rows(make_plan(options), true),
            (std::set<Row>{{"exact-own-three-ranks", "own", 3, TransportKind::Threads}}));
  options.selection.schedules = "own";
  options.selection.ranks = {3};
  EXPECT_EQ(make_plan(options).groups.at(0).job.cases.at(0).csv, find_case("exact-own-three-ranks").schedule_csv);
  options.selection.ranks = {2};
  EXPECT_THROW(make_plan(options), InputError);
  options.selection.ranks.clear();
  options.selection.schedules = "1f1b";
  EXPECT_THROW(make_plan(options), InputError);
  options.selection.case_glob = "mlp";
  options.selection.schedules = "own";
  EXPECT_THROW(make_plan(options), InputError);
}

TEST(Plan, GroupsHoldTheRunsThatCanBe) {
  const RunPlan plan = make_plan({});
  std::set<int64_t> ranks = {2, 4, 8};
  for (const reference::Case& c : corpus())
    if (!c.schedule_csv.empty()) ranks.insert(std::ranges::count(c.schedule_csv, '\n'));
  EXPECT_EQ(plan.groups.size(), ranks.size() * (1 + PLUMBLINE_HAS_MPI));
  std::set<size_t> seen;
  for (const RunGroup& group : plan.groups) {
    ASSERT_EQ(group.job.cases.size(), group.runs.size());
    for (size_t i = 0; i < group.runs.size(); ++i) {
      const PlannedRun& run = plan.runs.at(group.runs[i]);
      EXPECT_TRUE(seen.insert(group.runs[i]).second);
      EXPECT_EQ(run.unsupported, "");
      EXPECT_EQ(run.id.ranks, group.job.ranks);
      EXPECT_EQ(run.id.transport, transport_name(group.transport));
      EXPECT_EQ(run.id.case_id, group.job.cases[i].id);
      EXPECT_EQ(run.id.schedule, group.job.cases[i].schedule);
    }
  }
  EXPECT_EQ(seen.size(), rows(plan, true).size());
}

TEST(Plan, WhatTheUserNamesIsTheOnlyOne) {
  RunOptions options;
  options.selection.ranks = {2};
  for (const PlannedRun& run : make_plan(options).runs)
    EXPECT_TRUE(run.id.ranks == 2 || run.unsupported.find("its own schedule is for") == 0) << run.id.case_id;
  options.selection.transport = TransportKind::Threads;
  EXPECT_EQ(make_plan(options).groups.size(), 1u);
  options.selection.schedules = "1f1b";
  EXPECT_EQ(make_plan(options).runs.size(), corpus().size() - profile("own-schedule").size());

  // A case alone runs on 4 ranks as threads; with a profile beside it, everywhere that the profile goes.
  options = {};
  options.selection.case_glob = "mlp";
  options.selection.schedules = "gpipe";
  EXPECT_EQ(rows(make_plan(options), true), (std::set<Row>{{"mlp", "gpipe", 4, TransportKind::Threads}}));
  options.selection.profile = "nightly";
  EXPECT_EQ(make_plan(options).runs.size(), 3u * (1 + PLUMBLINE_HAS_MPI));
  // Under mpirun there is one group whatever the profile.
  options.selection.transport = TransportKind::Mpi;
  EXPECT_EQ(rows(make_plan(options, /*processes=*/4), true), (std::set<Row>{{"mlp", "gpipe", 4, TransportKind::Mpi}}));
}

TEST(Plan, SeveralNumbersOfRanksAreAllTaken) {
  RunOptions options;
  options.selection.case_glob = "mlp,exact-own-three-ranks";
  options.selection.schedules = "gpipe,own";
  options.selection.ranks = {2, 3, 8};
  const RunPlan plan = make_plan(options);
  std::set<Row> expected = {{"exact-own-three-ranks", "own", 3, TransportKind::Threads}};
  for (const int ranks : {2, 3, 8}) expected.insert({"mlp", "gpipe", ranks, TransportKind::Threads});
  EXPECT_EQ(rows(plan, true), expected);
  EXPECT_EQ(plan.runs.size(), expected.size());

  options = {};  // core: fewer rows than all, on these numbers alone
  options.selection.ranks = {2, 8};
  std::set<int> ranks;
  for (const Row& row : rows(make_plan(options), true)) ranks.insert(std::get<2>(row));
  EXPECT_EQ(ranks, (std::set<int>{2, 8}));
  EXPECT_LT(rows(make_plan(options), true).size(), 5 * corpus().size());

  options.backend.ranks = {2, 4};
  testing::expect_part(testing::refusal([&] { make_plan(options); }), "--ranks: 8 given; the backend's file says 2, 4");
  options.selection.ranks.clear();
  for (const Row& row : rows(make_plan(options), true))
    EXPECT_TRUE(std::get<2>(row) == 2 || std::get<2>(row) == 4) << std::get<0>(row);
}

/// Whether a case and a schedule go together, from what they are alone.
bool can_ever_go_together(const reference::Case& c, const std::string& schedule) {
  const bool trains = std::find(c.steps.begin(), c.steps.end(), reference::StepKind::Train) != c.steps.end();
  const bool two_models = schedule == "dualpipe" || schedule == "chimera";
  if (!c.schedule_csv.empty() || schedule == "own") return !c.schedule_csv.empty() && schedule == "own";
  if (schedule == "dualpipe" && c.microbatches < 4) return true;  // there is no such schedule: that is the reason
  if (two_models && c.whole_gradients) return false;
  return !trains || (schedule != "forward-only" && !(two_models && c.model.find("bn") != std::string::npos));
}

TEST(Plan, WhatCanNeverBeIsNotPlanned) {
  for (const char* profile : {"core", "nightly", "ranks"}) {
    RunOptions options;
    options.selection.profile = profile;
    std::set<std::string> planned, expected;
    for (const PlannedRun& run : make_plan(options).runs) planned.insert(run.id.case_id + " x " + run.id.schedule);
    std::vector<std::string> schedules = schedule::schedule_names();
    schedules.emplace_back("own");
    for (const reference::Case& c : conformance::profile(profile))
      for (const std::string& schedule : schedules)
        if (can_ever_go_together(c, schedule)) expected.insert(c.id + " x " + schedule);
    std::vector<std::string> more;
    std::ranges::set_difference(planned, expected, std::back_inserter(more));
    EXPECT_EQ(more, std::vector<std::string>{}) << profile;
    if (std::string_view(profile) == "nightly") {
      EXPECT_EQ(planned, expected);
    }
  }
  RunOptions options;
  options.selection.case_glob = "mlp";
  options.selection.schedules = "forward-only";
  EXPECT_EQ(testing::refusal([&] { make_plan(options); }),
            "nothing to run: mlp x forward-only on 4 ranks: it trains, and the schedule has no backward");
  options.selection.case_glob = "exact-own-three-ranks";
  options.selection.schedules = "1f1b";
  testing::expect_part(testing::refusal([&] { make_plan(options); }), "it has a schedule of its own");
}

TEST(Plan, ALossThatDoesNotFitItsModelRefusesTheWholeRun) {
  NamedModels models;
  models.unfit = "mlp";
  RunOptions options;
  options.selection.case_glob = "exact-skip";
  EXPECT_FALSE(conformance::make_plan(options, models).groups.empty());
  options.selection.case_glob = "exact-skip,mlp";
  EXPECT_EQ(testing::refusal([&] { conformance::make_plan(options, models); }), "the loss of mlp does not fit");
}

TEST(Plan, WhatCannotBeIsToldBeforeTheRun) {
  NamedModels models;
  const auto reason = [&](const std::string& id, const schedule::Schedule& schedule) {
    return why_unsupported(find_case(id), schedule, models);
  };
  EXPECT_EQ(reason("mlp", schedule::make_schedule("1f1b", 16, 4)), "");
  EXPECT_EQ(reason("mlp", schedule::make_schedule("1f1b", 17, 4)),
            "15 split points, enough for 16 stages; the schedule has 17");
  schedule::Schedule forwards = schedule::make_schedule("1f1b", 2, 4);
  for (auto& rank : forwards.ranks)
    std::erase_if(rank, [](const schedule::Action& action) { return action.type != schedule::ActionType::F; });
  EXPECT_NE(reason("mlp", forwards).find("no backward"), std::string::npos);
  EXPECT_EQ(reason("exact-eval-only", forwards), "");
  schedule::Schedule replicated = schedule::make_schedule("1f1b", 2, 4);
  replicated.rank_of_stage = {0, 1, 1, 0};
  replicated.replica_of_microbatch = {0, 0, 1, 1};
  EXPECT_EQ(reason("mlp", replicated), "");
  EXPECT_NE(reason("resnet-bn", replicated).find("2 replicas"), std::string::npos);
  // Lowered for a chain, stage 2 receives nothing: stage 1 is on its rank. But a skip comes from stage 0, which is not.
  const schedule::Schedule lowered = lower(schedule::make_schedule("zb-v", 2, 4), schedule::chain_edges(4));
  EXPECT_EQ(reason("mlp", lowered), "");
  EXPECT_NE(reason("exact-skip", lowered), "");
}

TEST(Plan, ACaseThatCannotBePartitionedIsUnsupportedWithRemat) {
  for (const char* id : {"exact-skip", "exact-own-three-ranks", "exact-eval-only", "mlp"}) {
    RunOptions options;
    options.selection.case_glob = id;
    options.selection.schedules = find_case(id).schedule_csv.empty() ? "gpipe" : "own";
    EXPECT_FALSE(make_plan(options).groups.empty()) << id;
    options.remat.mode = "bytes";
    if (std::string_view(id) == "mlp" || std::string_view(id) == "exact-eval-only")
      EXPECT_FALSE(make_plan(options).groups.empty()) << id;
    else
      testing::expect_part(testing::refusal([&] { make_plan(options); }), "it cannot be partitioned");
    options.recompute = "always";
    testing::expect_part(testing::refusal([&] { make_plan(options); }), "--remat and --recompute");
  }
}

// Beside mlp, which has rows enough, such a case is planned, and unsupported.
TEST(Plan, EveryMicrobatchOfEveryStepHasARow) {
  for (const auto& [id, rows] : {std::pair{"exact-batch-mean-accumulate", 4}, {"exact-eval-other-rows", 6}}) {
    for (const int microbatches : {rows, rows + 1, 8}) {
      RunOptions options;
      options.selection.case_glob = std::string(id) + ",mlp";
      options.selection.schedules = "gpipe";
      options.microbatches = microbatches;
      for (const PlannedRun& run : make_plan(options).runs)
        EXPECT_EQ(run.unsupported,
                  run.id.case_id == "mlp" || microbatches == rows
                      ? ""
                      : std::to_string(rows) + " rows, too few for --microbatches " + std::to_string(microbatches))
            << run.id.case_id << " " << microbatches;
    }
  }
}

TEST(Plan, AMutantNeedsItsRanks) {
  RunOptions options;
  options.selection.case_glob = "mlp";
  options.mutant = "swap-microbatches";
  options.mutant_ranks = 2;
  options.selection.ranks = {1};
  testing::expect_part(testing::refusal([&] { make_plan(options); }), "swap-microbatches needs 2 ranks");
  options.selection.ranks = {2};
  EXPECT_FALSE(make_plan(options).groups.empty());
}

TEST(Plan, AScheduleFromAFileRunsWhereItFits) {
  const TemporaryFolder folder;
  const std::string path = (folder / "v.csv").string();
  std::ofstream(path) << "0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n";
  RunOptions options;
  options.selection.schedules = path;
  options.selection.ranks = {2};
  const RunPlan plan = make_plan(options);
  for (const PlannedRun& run : plan.runs) {
    EXPECT_EQ(run.unsupported.empty(), find_case(run.id.case_id).microbatches == 1) << run.id.case_id;
    EXPECT_NE(run.csv, "") << run.id.case_id;
  }
  options.selection.case_glob = "mlp";  // 4 micro-batches
  const std::string why = testing::refusal([&] { make_plan(options); });
  testing::expect_part(why, "nothing to run: mlp x");
  testing::expect_part(why, "it has 1 micro-batches, not 4");
}

TEST(Plan, AFileAloneBringsItsOwnNumberOfRanks) {
  const TemporaryFolder folder;
  const std::string path = (folder / "ranks.csv").string();
  std::ofstream(path) << "0F0,0B0\n1F0,1B0\n2F0,2B0\n";
  RunOptions options;
  options.selection.case_glob = "exact-one-microbatch";
  options.selection.schedules = path;
  const auto ranks = [&] {
    std::vector<int> found;
    for (const PlannedRun& run : make_plan(options).runs) found.push_back(run.id.ranks);
    return found;
  };
  EXPECT_EQ(ranks(), std::vector<int>{3});
  *options.selection.schedules += ",1f1b";
  EXPECT_THROW(ranks(), InputError) << "beside a name there is no number that both have";
  options.selection.ranks = {2};
  options.selection.schedules = path;
  EXPECT_THROW(ranks(), InputError) << "what the user says counts";
}

// Beside a schedule that runs, one that is broken may not go as "unsupported".
TEST(Plan, AFileThatFitsNoCaseIsRefused) {
  const TemporaryFolder folder;
  const std::string path = (folder / "broken.csv").string();
  std::ofstream(path) << "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1SEND_B0,1B0\n";
  RunOptions options;
  options.selection.case_glob = "exact-one-microbatch";
  options.selection.schedules = "1f1b," + path;
  options.selection.ranks = {2};
  testing::expect_part(testing::refusal([&] { make_plan(options); }),
                       path + " on 2 ranks: rank 1, position 2 (1SEND_B0)");
}

}  // namespace
}  // namespace plumbline::conformance
