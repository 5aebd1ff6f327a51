// Steps whose idle times have a known cause, because the test puts it there.
#include "bench/gaps/gaps.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <pugixml.hpp>

#include "runtime/error.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/simulation/simulate.h"

namespace plumbline::bench {
namespace {

using schedule::Action;
using schedule::ActionType;

struct Costs {
  std::function<double(int rank, const Action&)> work = [](int, const Action& action) {
    return action.type == ActionType::F ? 1.0 : 2.0;
  };
  double overhead = 0;  ///< before each computation
  std::function<double(const Action&)> message = [](const Action&) { return 0.0; };
};

/// Executes the schedule: each computation when its rank is free and its message is there.
schedule::Trace executed(const std::string& name, int ranks, int microbatches, const Costs& costs) {
  const schedule::Schedule made = schedule::make_schedule(name, ranks, microbatches);
  std::map<std::tuple<ActionType, int, int>, double> ended;
  schedule::Trace trace{"measured", std::vector<std::vector<schedule::TimedAction>>(made.ranks.size())};
  for (bool any = true; any;) {
    any = false;
    for (int rank = 0; rank < ranks; ++rank) {
      auto& done = trace.ranks[rank];
      while (done.size() < made.ranks[rank].size()) {
        const Action& action = made.ranks[rank][done.size()];
        const bool forward = action.type == ActionType::F;
        const int from = action.stage + (forward ? -1 : 1);
        double arrived = 0;
        if (from >= 0 && from < made.stages) {
          const auto input = ended.find({action.type, from, action.microbatch});
          if (input == ended.end()) break;
          arrived = input->second + costs.message(action);
        }
        const double begin =
            std::max((done.empty() ? 0 : done.back().end) + (done.empty() ? 0 : costs.overhead), arrived);
        done.push_back({action, begin, begin + costs.work(rank, action)});
        ended[{action.type, action.stage, action.microbatch}] = done.back().end;
        any = true;
      }
    }
  }
  return trace;
}

/// The idle time of all ranks by cause.
std::map<std::string, double> idle(const Bubble& bubble) {
  std::map<std::string, double> sums;
  for (const Gap& gap : bubble.gaps)
    for (int cause = 0; cause < kCauses; ++cause)
      if (gap.by[cause] > 1e-9) sums[cause_name(static_cast<Cause>(cause))] += gap.by[cause];
  return sums;
}

void expect_whole(const Bubble& bubble) {
  double idle = 0, computed = 0;
  for (const Gap& gap : bubble.gaps) {
    EXPECT_NEAR(std::accumulate(gap.by.begin(), gap.by.end(), 0.0), gap.end - gap.begin, 1e-9);
    idle += gap.end - gap.begin;
  }
  for (const auto& rank : bubble.computations)
    for (const auto& timed : rank) computed += timed.end - timed.begin;
  EXPECT_NEAR(idle + computed, static_cast<double>(bubble.computations.size()) * (bubble.end - bubble.begin), 1e-9);
  // the path is a chain from the beginning to the end
  EXPECT_EQ(bubble.path.front().begin, bubble.begin);
  EXPECT_EQ(bubble.path.back().end, bubble.end);
  for (size_t i = 1; i < bubble.path.size(); ++i) EXPECT_EQ(bubble.path[i].begin, bubble.path[i - 1].end);
}

// With equal stages and no other cost, the bubble is the published one: (p - 1) (F + B) on every rank.
TEST(Gaps, AnIdealStepHasOnlyDependencies) {
  for (const char* name : {"gpipe", "1f1b"}) {
    const Bubble bubble = explain(executed(name, 4, 8, {}));
    expect_whole(bubble);
    EXPECT_DOUBLE_EQ(bubble.end, 33);
    EXPECT_EQ(idle(bubble).size(), 1u) << name;
    EXPECT_NEAR(idle(bubble)["dependency"], 4 * 3 * 3, 1e-9) << name;
  }
}

TEST(Gaps, ASlowStageIsImbalance) {
  Costs costs;
  costs.work = [](int rank, const Action& action) {
    return (action.type == ActionType::F ? 1.0 : 2.0) * (rank == 2 ? 2 : 1);
  };
  const Bubble bubble = explain(executed("1f1b", 4, 8, costs));
  expect_whole(bubble);
  std::map<std::string, double> sums = idle(bubble);
  EXPECT_GT(sums["imbalance"], 30);
  EXPECT_EQ(sums.count("other load") + sums.count("late message") + sums.count("overhead"), 0u);
  // The slow rank determines the step. Its second forward fits in while it waits for the first backward.
  double on_slow = 0;
  for (const CriticalStep& step : bubble.path) on_slow += step.rank == 2 && step.computes ? step.end - step.begin : 0;
  EXPECT_DOUBLE_EQ(on_slow, 8 * 6 - 2);
}

TEST(Gaps, OneSlowComputationIsOtherLoad) {
  Costs costs;
  costs.work = [](int rank, const Action& action) {
    return (action.type == ActionType::F ? 1.0 : 2.0) + (rank == 1 && action == Action{1, ActionType::F, 5} ? 6 : 0);
  };
  const Bubble bubble = explain(executed("1f1b", 4, 32, costs));
  expect_whole(bubble);
  std::map<std::string, double> sums = idle(bubble);
  EXPECT_NEAR(sums["other load"], 3 * 6, 3);  // the other three ranks wait for it; a mean of the kind moves by 6/128
  EXPECT_EQ(sums.count("late message") + sums.count("overhead"), 0u);
}

TEST(Gaps, OneLateMessageIsFoundWhereItArrives) {
  Costs costs;
  costs.message = [](const Action& action) { return action == Action{2, ActionType::F, 3} ? 5.0 : 0.0; };
  const Bubble bubble = explain(executed("gpipe", 4, 8, costs));
  expect_whole(bubble);
  double late = 0;
  for (const Gap& gap : bubble.gaps) {
    if (gap.by[static_cast<size_t>(Cause::LateMessage)] < 1e-9) continue;
    EXPECT_EQ(bubble.computations[gap.rank][gap.before].action, (Action{2, ActionType::F, 3}));
    late += gap.by[static_cast<size_t>(Cause::LateMessage)];
  }
  EXPECT_NEAR(late, 5, 1e-9);
  EXPECT_NEAR(idle(bubble)["elsewhere"], 15, 1e-9);  // the other three ranks wait for it as well
}

TEST(Gaps, OverheadIsBeforeEveryComputation) {
  Costs costs;
  costs.overhead = 0.1;
  const Bubble bubble = explain(executed("gpipe", 2, 8, costs));
  expect_whole(bubble);
  std::map<std::string, double> sums = idle(bubble);
  // Rank 0 before 7 forwards, rank 1 before 8 backwards; the others wait for these.
  EXPECT_NEAR(sums["overhead"], 15 * 0.1, 1e-9);
  EXPECT_GT(sums["elsewhere"], 1);
  EXPECT_EQ(sums.count("late message"), 0u);
}

TEST(Gaps, EverySchedulesIdealStepIsExplained) {
  for (const std::string& name : schedule::schedule_names()) {
    schedule::Schedule made;
    try {
      made = schedule::make_schedule(name, 4, 8);
    } catch (const InputError&) {
      continue;
    }
    if (!schedule::has_backward(made)) continue;
    const bool groups = std::ranges::any_of(made.ranks, [](const auto& rank) {
      return std::ranges::any_of(rank, [](const Action& action) { return action.overlaps_next; });
    });
    const bool replicated = name.find("chimera") != name.npos || name.starts_with("dualpipe");
    if (groups || replicated) continue;
    schedule::StepCosts costs;
    costs.durations = {{.forward = 2, .input = 2, .weight = 2, .backward = 4}};
    const schedule::Simulation ideal =
        schedule::simulate_step(made, schedule::chain_edges(made.stages), costs, {.trace = true});
    const Bubble bubble = explain(ideal.trace);
    expect_whole(bubble);
    const std::map<std::string, double> sums = idle(bubble);
    EXPECT_EQ(sums.size(), sums.count("dependency")) << name;
  }
}

TEST(Gaps, ClocksThatDifferAreRefused) {
  schedule::Trace trace = executed("gpipe", 2, 2, {});
  for (schedule::TimedAction& timed : trace.ranks[1]) timed.begin -= 0.5, timed.end -= 0.5;
  EXPECT_THROW(explain(trace), InputError);
  trace.ranks[0].clear();
  EXPECT_THROW(explain(trace), InputError);
  EXPECT_THROW(explain({"empty", {{}}}), InputError);
}

TEST(Gaps, TextPictureAndEvents) {
  Costs costs;
  costs.overhead = 0.25;
  const Bubble bubble = explain(executed("1f1b", 2, 4, costs));
  const std::string text = bubble_text(bubble, "ms");
  EXPECT_NE(text.find("rank"), std::string::npos);
  EXPECT_NE(text.find("critical path"), std::string::npos) << text;
  pugi::xml_document picture;
  ASSERT_TRUE(picture.load_string(bubble_svg(bubble, "a <title>", "ms").c_str()));
  EXPECT_EQ(picture.select_nodes("//rect[@class='gap']").size(), bubble.gaps.size());
  EXPECT_EQ(picture.select_nodes("//rect[@class='computation']").size(), 16u);
  const auto events = nlohmann::json::parse(bubble_chrome_trace(bubble)).at("traceEvents");
  size_t gaps = 0;
  for (const auto& event : events) gaps += event.value("cat", "") == "idle";
  EXPECT_EQ(gaps, bubble.gaps.size());
}

}  // namespace
}  // namespace plumbline::bench
