// The pictures of traces: the grid, the timeline and the Chrome trace.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "conformance/report/chrome_trace.h"
#include "conformance/report/svg/schedule_grid.h"
#include "conformance/report/svg/timeline_svg.h"
#include "runtime/error.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/text/csv.h"

namespace plumbline::conformance {
namespace {

using enum schedule::ActionType;

schedule::Simulation simulation_of(const schedule::Schedule& schedule, double comm = 0) {
  schedule::StepCosts costs;
  costs.durations[0].comm = comm;
  return schedule::simulate_step(schedule, schedule::chain_edges(schedule.stages), costs,
                                 {.trace = true, .transfers = true, .memory = true, .critical_path = false});
}

TEST(ScheduleGrid, CellsGroupsAndBubbles) {
  const schedule::Schedule schedule = schedule::parse_csv("0F0,(0F1;0B0)OVERLAP_F_B,0I1,0W1\r\n", "one");
  EXPECT_EQ(schedule_grid(simulation_of(schedule).trace),
            "slot    0    1    2    3    4    5\n"
            "rank 0  0F0  0F1& 0B0  =    0I1  0W1\n");
  EXPECT_EQ(schedule_grid(simulation_of(schedule::make_schedule("gpipe", 2, 1)).trace),
            "slot    0   1   2   3   4   5\n"
            "rank 0  0F0 .   .   .   0B0 =\n"
            "rank 1  .   1F0 1B0 =   .   .\n");
}

// All slots of all ranks would be 10 000 x 10 000 strings, some 3 GB.
TEST(ScheduleGrid, MakesOnlyWhatItShows) {
  const int ranks = 10000;
  schedule::Trace trace;
  for (int r = 0; r < ranks; ++r) trace.ranks.push_back({{{r, F, 0}, r * 1.0, r + 1.0}});
  const std::string text = schedule_grid(trace, {.width = 40, .most_lines = 2});
  EXPECT_EQ(text,
            "slot    0     1     2     3     4\n"
            "rank 0  0F0   .     .     .     .\n"
            "rank 1  .     1F0   .     .     .\n"
            "(ranks 2 to 9999 are not shown)\n"
            "(slots 5 to 9999 are not shown)\n");
}

TEST(ScheduleGrid, WrapsAndSaysWhatIsLeftOut) {
  const schedule::Trace trace = simulation_of(schedule::make_schedule("gpipe", 3, 1)).trace;
  EXPECT_EQ(schedule_grid(trace, {.width = 24, .most_lines = 100}),
            "slot    0   1   2   3\n"
            "rank 0  0F0 .   .   .\n"
            "rank 1  .   1F0 .   .\n"
            "rank 2  .   .   2F0 2B0\n"
            "\n"
            "slot    4   5   6   7\n"
            "rank 0  .   .   .   0B0\n"
            "rank 1  .   1B0 =   .\n"
            "rank 2  =   .   .   .\n"
            "\n"
            "slot    8\n"
            "rank 0  =\n"
            "rank 1  .\n"
            "rank 2  .\n");
  EXPECT_EQ(schedule_grid(trace, {.width = 24, .most_lines = 2}),
            "slot    0   1   2   3\n"
            "rank 0  0F0 .   .   .\n"
            "rank 1  .   1F0 .   .\n"
            "(ranks 2 to 2 are not shown)\n"
            "(slots 4 to 8 are not shown)\n");
}

TEST(ChromeTrace, EventsAreTheActions) {
  const schedule::Simulation simulation = simulation_of(schedule::make_schedule("zb-h1", 3, 4), 0.5);
  schedule::Trace measured = simulation.trace;
  measured.name = "measured \"twice\"\n\xff";
  measured.ranks[0].push_back({{0, UNSHARD, schedule::kNoMicrobatch}, 100, 101});
  const std::vector<schedule::Trace> traces = {simulation.trace, measured};
  const auto json =
      nlohmann::json::parse(chrome_trace(traces, {.microseconds_per_unit = 1000, .transfers = simulation.transfers}));
  std::map<std::pair<int, int>, std::vector<nlohmann::json>> events;
  std::map<int, std::vector<nlohmann::json>> arrows;
  std::vector<std::string> processes;
  for (const auto& event : json.at("traceEvents")) {
    const std::string phase = event.at("ph");
    if (phase == "X") events[{event.at("pid"), event.at("tid")}].push_back(event);
    if (phase == "s" || phase == "f") arrows[event.at("id")].push_back(event);
    if (phase == "M" && event.at("name") == "process_name") processes.push_back(event.at("args").at("name"));
  }
  ASSERT_EQ(processes.size(), 2u);
  EXPECT_EQ(processes[0], "predicted");
  for (int process = 0; process < 2; ++process) {
    for (int rank = 0; rank < 3; ++rank) {
      const auto& actions = traces[process].ranks[rank];
      const auto& found = events[{process, rank}];
      ASSERT_EQ(found.size(), actions.size());
      for (std::size_t i = 0; i < actions.size(); ++i) {
        const schedule::Action& action = actions[i].action;
        EXPECT_EQ(found[i].at("name"), to_string(action));
        EXPECT_EQ(found[i].at("ts"), actions[i].begin * 1000);
        EXPECT_EQ(found[i].at("dur"), (actions[i].end - actions[i].begin) * 1000);
        EXPECT_EQ(found[i].at("args").at("stage"), action.stage);
        EXPECT_EQ(found[i].at("args").at("kind"), std::string(to_string(action.type)));
        EXPECT_EQ(found[i].at("args").contains("microbatch"), action.type != UNSHARD);
      }
    }
  }
  EXPECT_EQ(arrows.size(), simulation.transfers.size());
  for (const auto& [id, ends] : arrows) {
    ASSERT_EQ(ends.size(), 2u);
    EXPECT_EQ(ends[0].at("ph"), "s");
    EXPECT_LT(ends[0].at("ts").get<double>(), ends[1].at("ts").get<double>());
    EXPECT_NE(ends[0].at("tid"), ends[1].at("tid"));
  }
}

TEST(TimelineSvg, IsXmlWithABlockForEachAction) {
  const schedule::Simulation simulation = simulation_of(schedule::make_schedule("1f1b", 4, 6));
  schedule::Trace measured = simulation.trace;
  measured.name = "measured <on 2 cores>";
  for (auto& actions : measured.ranks) {
    for (schedule::TimedAction& timed : actions) {
      timed.begin = 100 + 1.1 * timed.begin;
      timed.end = 100 + 1.1 * timed.end;
    }
  }
  const std::vector<schedule::Trace> traces = {simulation.trace, measured};
  const std::string svg = timeline_svg(traces, {.title = "1f1b & more", .unit = "ms", .memory = simulation.memory});
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(svg.c_str()));
  EXPECT_EQ(document.select_nodes("//rect/title").size(), 2u * 4 * 12);
  EXPECT_EQ(document.select_nodes("//path/title").size(), 4u) << "memory";
  // Bubble: (P-1)/(M+P-1) = 3/9. The second trace takes 1.1 times as long and begins later.
  EXPECT_NE(svg.find("makespan 27 ms  \xc2\xb7  bubble 33.3 %"), std::string::npos);
  EXPECT_NE(svg.find("makespan 29.7 ms  \xc2\xb7  bubble 33.3 %"), std::string::npos);
  EXPECT_NE(svg.find("measured &lt;on 2 cores&gt;"), std::string::npos);
  // On the common axis the longer trace ends at the right edge.
  double last = 0;
  for (const auto& block : document.select_nodes("//rect[title]")) {
    last = std::max(last, block.node().attribute("x").as_double() + block.node().attribute("width").as_double());
  }
  EXPECT_NEAR(last, 1176, 1);
}

TEST(TimelineSvg, RefusesWhatNoViewerOpens) {
  EXPECT_TRUE(timeline_svg({}, {.title = "nothing", .unit = "", .memory = {}}).starts_with("<svg "));
  schedule::Trace trace;
  trace.ranks.resize(1);
  trace.ranks[0].resize(200001);
  EXPECT_THROW(timeline_svg({&trace, 1}, {.title = "", .unit = "", .memory = {}}), InputError);
}

}  // namespace
}  // namespace plumbline::conformance
