#include "runtime/schedule/simulation/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "runtime/error.h"
#include "runtime/schedule/check/check.h"
#include "runtime/schedule/lowering/lower.h"
#include "runtime/schedule/lowering/replica_actions.h"
#include "runtime/schedule/orders/data_parallel.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/testing/random_step.h"
#include "runtime/schedule/testing/simulation_oracle.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/testing/refusal.h"

namespace plumbline::schedule {

/// "rank 2: 1F0", "1F0 from rank 2 to rank 3", ...
static std::string to_string(const PathStep& step) {
  const auto rank = [](int number) { return "rank " + std::to_string(number); };
  const std::string action = to_string(step.action);
  switch (step.kind) {
    case PathStep::Kind::Action:
      return rank(step.rank) + ": " + action;
    case PathStep::Kind::Transfer:
      return action + " from " + rank(step.rank) + " to " + rank(step.to_rank);
    case PathStep::Kind::Queue:
      return action + " keeps the link from " + rank(step.rank) + " to " + rank(step.to_rank);
    case PathStep::Kind::HostTransfer:
      return action + " between " + rank(step.rank) + " and its host";
    case PathStep::Kind::Operation:
      return action + " on all ranks of the stage, the last of which was " + rank(step.rank);
    case PathStep::Kind::Buffer:
      break;
  }
  return rank(step.rank) + " begins " + action + ", which frees a buffer of " + rank(step.to_rank);
}

namespace {

using enum ActionType;
using testing::RandomStep;
using testing::slow_step;
using testing::SlowStep;

constexpr Records kAll{.trace = true, .transfers = true, .memory = true, .critical_path = true};

std::string error_of(const Schedule& schedule, const std::vector<StageEdge>& edges, const StepCosts& costs) {
  return testing::refusal([&] { simulate_step(schedule, edges, costs); });
}

StepCosts unit_costs(double comm = 0) {
  StepCosts costs;
  costs.durations[0].comm = comm;
  return costs;
}

std::vector<std::pair<std::size_t, std::size_t>> units_of(const std::vector<Action>& actions) {
  std::vector<std::pair<std::size_t, std::size_t>> units;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const bool joined = i > 0 && actions[i - 1].overlaps_next;
    if (!joined) units.emplace_back(i, i);
    units.back().second = i;
  }
  return units;
}

TEST(Simulation, AgreesWithATimeSteppedSimulator) {
  int deadlocks = 0, stalled_or_queued = 0, grouped = 0, skipping = 0;
  std::size_t whole_stages = 0, offloads = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    std::mt19937 random(seed);
    const RandomStep step = testing::random_step(random);
    const SlowStep slow = slow_step(step.compute, step.edges, step.costs);
    if (slow.deadlock) {
      ++deadlocks;
      ASSERT_NE(error_of(step.compute, step.edges, step.costs), "accepted") << "seed " << seed;
      continue;
    }
    const Simulation fast = simulate_step(step.compute, step.edges, step.costs, kAll);
    ASSERT_EQ(fast.timeline.makespan, slow.makespan) << "seed " << seed;
    ASSERT_EQ(fast.timeline.busy, slow.busy) << "seed " << seed;
    ASSERT_EQ(fast.peak_memory, slow.peak_memory) << "seed " << seed;
    for (std::size_t rank = 0; rank < step.compute.ranks.size(); ++rank) {
      std::vector<Action> actions = step.compute.ranks[rank];
      whole_stages += std::erase_if(actions, [](const Action& action) { return !has_microbatch(action.type); });
      offloads += std::erase_if(actions, [](const Action& action) { return is_offload(action.type); });
      const auto& times = fast.trace.ranks[rank];
      ASSERT_EQ(times.size(), actions.size()) << "seed " << seed;
      for (const auto& [first, last] : units_of(actions)) {
        if (last > first) ++grouped;
        ASSERT_EQ(times[first].begin, slow.begin.at(to_string(actions[first]))) << "seed " << seed;
        ASSERT_EQ(times[last].end, slow.end.at(to_string(actions[last]))) << "seed " << seed;
        for (std::size_t i = first; i <= last; ++i) {
          ASSERT_EQ(times[i].action, actions[i]) << "seed " << seed;
          ASSERT_LE(times[i].begin, times[i].end) << "seed " << seed;
          if (i > first) {
            ASSERT_EQ(times[i].begin, times[i - 1].end) << "seed " << seed;
          }
        }
      }
      double peak = 0;
      for (const MemoryPoint& point : fast.memory[rank]) peak = std::max(peak, point.bytes);
      ASSERT_EQ(peak, fast.peak_memory[rank]) << "seed " << seed;
    }
    if (!step.costs.skips.empty()) ++skipping;
    for (const Transfer& transfer : fast.transfers) {
      const double ended = slow.end.at(to_string(transfer.producer));
      if (transfer.sent > ended || transfer.begin > transfer.sent) ++stalled_or_queued;
    }
    // The records do not change the result.
    const Simulation bare = simulate_step(step.compute, step.edges, step.costs);
    ASSERT_EQ(bare.timeline.end, fast.timeline.end) << "seed " << seed;
    ASSERT_EQ(bare.peak_memory, fast.peak_memory) << "seed " << seed;
  }
  EXPECT_GT(deadlocks, 20);
  EXPECT_GT(stalled_or_queued, 500);
  EXPECT_GT(grouped, 500);
  EXPECT_GT(skipping, 300);
  EXPECT_GT(whole_stages, 2000u);
  EXPECT_GT(offloads, 2000u);
}

// Two data-parallel replicas of two ranks each; F and B take 1 and 2.
TEST(Simulation, OperationsOfWholeStagesByHand) {
  StepCosts costs;
  costs.durations = {{.forward = 1, .input = 1, .weight = 1, .backward = {}, .comm = 0, .gather = 3, .reduce = 5}};
  const Schedule mesh = data_parallel(make_schedule("gpipe", 2, 1), 2);
  const Simulation summed =
      simulate_step(with_replica_actions(mesh, {.reduce_early = true, .shard = false}), chain_edges(2), costs, kAll);
  // 0F 1, 1F 2, 1B 4 and its sum 9; 0B 6 and its sum 11.
  EXPECT_EQ(summed.timeline.makespan, 11);
  EXPECT_EQ(summed.timeline.busy, (std::vector<double>{3, 3, 3, 3}));
  EXPECT_EQ(to_string(summed.critical_path.back()),
            "0REDUCE_GRAD on all ranks of the stage, the last of which was rank 0");
  // Stage 1 is gathered while rank 0 computes: it begins at 4, when 0F of 3 to 4 has ended.
  const Simulation sharded =
      simulate_step(with_replica_actions(mesh, {.reduce_early = true, .shard = true}), chain_edges(2), costs, kAll);
  EXPECT_EQ(sharded.timeline.makespan, 14);
  EXPECT_EQ(sharded.critical_path.front().kind, PathStep::Kind::Operation);
  double time = 0;
  for (const PathStep& step : sharded.critical_path) {
    EXPECT_EQ(step.begin, time) << to_string(step);
    time = step.end;
  }
  EXPECT_EQ(time, 14);
  // A rank of its own, gathered again for the backward: 3 + 1, 3 + 2.
  const Schedule alone = parse_csv("0UNSHARD,0F0,0RESHARD,0UNSHARD,0B0,0RESHARD\n", "alone");
  EXPECT_EQ(simulate_step(alone, {}, costs).timeline.makespan, 9);
}

// One rank, F and B take 1 and 2, the transfers of a micro-batch 3 and 2.
TEST(Simulation, OffloadsByHand) {
  StepCosts costs;
  costs.durations = {{.forward = 1, .offload = 3, .reload = 2}};
  costs.memory = {{.activation = 10, .weight_part = 4}};
  const auto step = [&](const std::string& csv) { return simulate_step(parse_csv(csv, "s"), {}, costs, kAll); };
  // Away from 1 to 4, the next one from 4 to 7; back at 7 and at 9, where each backward waits.
  const Simulation both = step("0F0,0OFFLOAD0,0F1,0OFFLOAD1,0RELOAD0,0B0,0RELOAD1,0B1\r\n");
  EXPECT_EQ(both.timeline.makespan, 15);
  EXPECT_EQ(both.timeline.busy, std::vector<double>{6});
  std::vector<std::pair<double, double>> seen;
  for (const MemoryPoint& point : both.memory[0]) seen.emplace_back(point.time, point.bytes);
  EXPECT_EQ(seen, (std::vector<std::pair<double, double>>{{0, 10}, {1, 20}, {4, 10}, {15, 0}}));
  EXPECT_EQ(both.timeline.peak_live, std::vector<int>{2});
  std::vector<std::string> names;
  for (const PathStep& piece : both.critical_path) names.push_back(to_string(piece));
  EXPECT_EQ(names,
            (std::vector<std::string>{"rank 0: 0F0", "0OFFLOAD0 between rank 0 and its host",
                                      "0OFFLOAD1 between rank 0 and its host", "0RELOAD0 between rank 0 and its host",
                                      "rank 0: 0B0", "0RELOAD1 between rank 0 and its host", "rank 0: 0B1"}));
  // Between the halves only the part that W needs moves.
  const Simulation halves = step("0F0,0I0,0OFFLOAD0,0F1,0RELOAD0,0W0,0B1\r\n");
  EXPECT_EQ(halves.timeline.makespan, 10) << "I ends at 2, OFFLOAD at 5, RELOAD at 7";
  EXPECT_EQ(halves.peak_memory, std::vector<double>{14});
}

// The path passes through operations without a gap, and every one begins with the last of its ranks.
TEST(Simulation, CriticalPathThroughOperations) {
  int operations = 0, offloads = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    std::mt19937 random(seed);
    const RandomStep step = testing::random_step(random);
    if (!has_communication(step.compute) && !has_offload(step.compute)) continue;
    if (error_of(step.compute, step.edges, step.costs) != "accepted") continue;
    const Simulation simulation = simulate_step(step.compute, step.edges, step.costs, kAll);
    double time = 0;
    for (const PathStep& piece : simulation.critical_path) {
      ASSERT_EQ(piece.begin, time) << "seed " << seed << ", " << to_string(piece);
      time = piece.end;
      const Durations& durations = of_stage(step.costs.durations, piece.action.stage);
      if (piece.kind == PathStep::Kind::HostTransfer) {
        ASSERT_EQ(piece.end - piece.begin, piece.action.type == OFFLOAD ? durations.offload : durations.reload);
        ++offloads;
      }
      if (piece.kind != PathStep::Kind::Operation) continue;
      ASSERT_EQ(piece.end - piece.begin, piece.action.type == UNSHARD ? durations.gather : durations.reduce);
      ++operations;
    }
    ASSERT_EQ(time, simulation.timeline.makespan) << "seed " << seed;
  }
  EXPECT_GT(operations, 200);
  EXPECT_GT(offloads, 200);
}

TEST(Simulation, ManyBuffersAreAsGoodAsAnyNumber) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    RandomStep step = testing::random_step(random);
    step.costs.links.buffers = 0;
    if (slow_step(step.compute, step.edges, step.costs).deadlock) continue;
    const Timeline any = simulate_step(step.compute, step.edges, step.costs).timeline;
    step.costs.links.buffers = 1000;
    ASSERT_EQ(simulate_step(step.compute, step.edges, step.costs).timeline.end, any.end) << "seed " << seed;
  }
}

TEST(Simulation, LinksThatCarryNothingOnlyDelay) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    RandomStep step = testing::random_step(random);
    step.costs.links.buffers = 0;
    step.costs.links.occupied = false;
    step.costs.links.bytes = {0};
    for (Skip& skip : step.costs.skips) skip = {.edge = skip.edge};
    if (slow_step(step.compute, step.edges, step.costs).deadlock) continue;
    const Timeline delays = simulate_step(step.compute, step.edges, step.costs).timeline;
    step.costs.links.occupied = true;
    ASSERT_EQ(simulate_step(step.compute, step.edges, step.costs).timeline.end, delays.end) << "seed " << seed;
  }
}

// Two forwards a time unit apart, messages of 3: the second waits for the link, and with one buffer the first rank
// waits for the second.
TEST(Simulation, LinksAndBuffersByHand) {
  const Schedule schedule = parse_csv("0F0,0F1,0F2\r\n1F0,1F1,1F2\r\n", "two");
  StepCosts costs;
  costs.links.all.bandwidth = 2;
  costs.links.bytes = {6};
  const auto begins = [&](int rank) {
    std::vector<double> times;
    const Trace trace = simulate_step(schedule, chain_edges(2), costs, kAll).trace;
    for (const TimedAction& timed : trace.ranks[rank]) times.push_back(timed.begin);
    return times;
  };
  EXPECT_EQ(begins(1), (std::vector<double>{4, 5, 6}));
  costs.links.occupied = true;
  EXPECT_EQ(begins(1), (std::vector<double>{4, 7, 10}));
  EXPECT_EQ(begins(0), (std::vector<double>{0, 1, 2}));
  costs.links.buffers = 1;
  EXPECT_EQ(begins(1), (std::vector<double>{4, 7, 10}));
  EXPECT_EQ(begins(0), (std::vector<double>{0, 1, 4})) << "the second message leaves when the first is taken, at 4";
}

TEST(Simulation, ACycleOfFullBuffersIsTold) {
  // Each rank makes two values that the other uses only after it has made its own two.
  Schedule schedule = parse_csv("0F0,0F1\r\n1F0,1F1\r\n", "crossed");
  schedule.rank_of_stage = {0, 1, 1, 0};
  schedule.microbatches = 4;
  schedule.replica_of_microbatch = {0, 0, 1, 1};
  schedule.ranks = {{{0, F, 0}, {0, F, 1}, {1, F, 2}, {1, F, 3}}, {{0, F, 2}, {0, F, 3}, {1, F, 0}, {1, F, 1}}};
  StepCosts costs;
  EXPECT_EQ(error_of(schedule, chain_edges(2), costs), "accepted");
  costs.links.buffers = 2;
  EXPECT_EQ(error_of(schedule, chain_edges(2), costs), "accepted");
  costs.links.buffers = 1;
  EXPECT_EQ(error_of(schedule, chain_edges(2), costs),
            "simulate: schedule crossed: deadlock with 1 buffer a link, a cycle: rank 0, position 1 (0F1) has no free "
            "buffer to rank 1; rank 1, position 1 (0F3) has no free buffer to rank 0");
}

TEST(Simulation, AGroupWaitsForAllItsMembersNeeds) {
  // 0B0 needs 1B0; outside a group it would let 0F1 go first.
  Schedule schedule = parse_csv("0F0,0F1,0B0,0B1\r\n1F0,1B0,1F1,1B1\r\n", "grouped");
  StepCosts costs;
  const auto begin_of = [&](std::size_t position) {
    return simulate_step(schedule, chain_edges(2), costs, kAll).trace.ranks[0][position].begin;
  };
  EXPECT_EQ(begin_of(1), 1);
  schedule.ranks[0][1].overlaps_next = true;
  EXPECT_EQ(begin_of(1), 4) << "when 1B0 is there";
  EXPECT_EQ(simulate_step(schedule, chain_edges(2), costs).timeline.makespan, 12);
  costs.group_time = [](const StepCosts&, std::span<const Action> members, double sum) {
    EXPECT_EQ(members.size(), 2u);
    return sum / 2;
  };
  EXPECT_EQ(simulate_step(schedule, chain_edges(2), costs).timeline.makespan, 10.5);
  // Each needs a result from the other's group: neither can begin.
  schedule.ranks[1][1].overlaps_next = true;
  EXPECT_EQ(
      error_of(schedule, chain_edges(2), costs),
      "simulate: schedule grouped: deadlock, a cycle: rank 0, position 2 (0B0) waits for 1B0 at rank 1, position 1; "
      "rank 1, position 2 (1F1) waits for 0F1 at rank 0, position 1");
}

// The zero-bubble paper's accounting: M_B from F to the input backward, M_W of it until the weight backward.
TEST(Simulation, MemoryOverTime) {
  const Schedule schedule = parse_csv("0F0,0F1,0I0,0W0,0I1,0W1\r\n", "one");
  StepCosts costs;
  costs.memory = {{.activation = 10, .weight_part = 4}};
  const Simulation simulation = simulate_step(schedule, {}, costs, {.memory = true});
  const std::vector<std::pair<double, double>> expected = {{0, 10}, {1, 20}, {3, 14}, {4, 10}, {5, 4}, {6, 0}};
  ASSERT_EQ(simulation.memory[0].size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(simulation.memory[0][i].time, expected[i].first);
    EXPECT_EQ(simulation.memory[0][i].bytes, expected[i].second);
  }
  EXPECT_EQ(simulation.peak_memory, std::vector<double>{20});
}

// From 0 to the makespan without a gap, each step able to begin only when the previous one ended.
TEST(Simulation, CriticalPathIsAChainOfRealDependencies) {
  std::map<PathStep::Kind, int> kinds;
  for (unsigned seed = 0; seed < 2500; ++seed) {
    std::mt19937 random(seed);
    const RandomStep step = testing::random_step(random);
    const Schedule& schedule = step.compute;
    if (has_communication(schedule) || has_offload(schedule)) continue;  // see CriticalPathThroughOperations
    const std::vector<StageEdge> edges = with_skips(step.edges, step.costs.skips);
    if (error_of(schedule, step.edges, step.costs) != "accepted") continue;
    const Simulation simulation = simulate_step(schedule, step.edges, step.costs, kAll);
    const std::vector<PathStep>& path = simulation.critical_path;
    ASSERT_FALSE(path.empty());
    ASSERT_EQ(path.front().begin, 0) << "seed " << seed;
    ASSERT_EQ(path.back().end, simulation.timeline.makespan) << "seed " << seed;
    const auto position = [&](const PathStep& s) {
      const auto& actions = schedule.ranks[s.rank];
      const auto found = std::find_if(actions.begin(), actions.end(),
                                      [&](const Action& a) { return to_string(a) == to_string(s.action); });
      EXPECT_NE(found, actions.end());
      return static_cast<std::size_t>(found - actions.begin());
    };
    const auto unit = [&](const PathStep& s) {
      for (const auto& [first, last] : units_of(schedule.ranks[s.rank])) {
        if (position(s) >= first && position(s) <= last) return std::pair(first, last);
      }
      return std::pair<std::size_t, std::size_t>();
    };
    const auto feeds = [&](const Action& producer, const Action& consumer) {
      if (producer.microbatch != consumer.microbatch || consumer.type == W) return false;
      if ((producer.type == F) != (consumer.type == F)) return false;
      const StageEdge edge =
          producer.type == F ? StageEdge{producer.stage, consumer.stage} : StageEdge{consumer.stage, producer.stage};
      return std::find(edges.begin(), edges.end(), edge) != edges.end();
    };
    for (std::size_t i = 0; i < path.size(); ++i) {
      const PathStep& now = path[i];
      const std::string context = "seed " + std::to_string(seed) + ", " + to_string(now);
      ++kinds[now.kind];
      if (now.kind == PathStep::Kind::Action) {
        const TimedAction& timed = simulation.trace.ranks[now.rank][position(now)];
        ASSERT_EQ(timed.begin, now.begin) << context;
        ASSERT_EQ(timed.end, now.end) << context;
      }
      if (i + 1 == path.size()) break;
      const PathStep& next = path[i + 1];
      ASSERT_EQ(now.end, next.begin) << context;
      const bool to_action = next.kind == PathStep::Kind::Action;
      const bool to_message = next.kind == PathStep::Kind::Transfer || next.kind == PathStep::Kind::Queue;
      switch (now.kind) {
        case PathStep::Kind::Action:
          ASSERT_EQ(next.rank, now.rank) << context;
          if (to_action) {
            ASSERT_EQ(position(next), position(now) + 1) << context;
          }
          if (to_message) {
            ASSERT_EQ(unit(next), unit(now)) << context << ": what it made";
          }
          if (next.kind == PathStep::Kind::Buffer) {
            ASSERT_EQ(unit(next).first, position(now) + 1) << context;
          }
          break;
        case PathStep::Kind::Transfer: {
          ASSERT_FALSE(to_message) << context;
          ASSERT_EQ(next.rank, now.to_rank) << context;
          bool needed = false;
          for (std::size_t j = unit(next).first; j <= unit(next).second; ++j) {
            needed = needed || feeds(now.action, schedule.ranks[next.rank][j]);
          }
          ASSERT_TRUE(needed) << context << " then " << to_string(next);
          break;
        }
        case PathStep::Kind::HostTransfer:
        case PathStep::Kind::Operation:
          FAIL() << context << ": nothing is offloaded, gathered or summed here";
        case PathStep::Kind::Queue:
          ASSERT_TRUE(to_message) << context;
          ASSERT_EQ(std::pair(now.rank, now.to_rank), std::pair(next.rank, next.to_rank)) << context;
          break;
        case PathStep::Kind::Buffer: {
          ASSERT_EQ(next.rank, now.to_rank) << context;
          bool takes = false;
          for (const Action& made : schedule.ranks[now.to_rank]) takes = takes || feeds(made, now.action);
          ASSERT_TRUE(takes) << context;
          break;
        }
      }
    }
  }
  for (const auto kind :
       {PathStep::Kind::Action, PathStep::Kind::Transfer, PathStep::Kind::Queue, PathStep::Kind::Buffer}) {
    EXPECT_GT(kinds[kind], 20);
  }
}

TEST(Simulation, PathStepsAreNamed) {
  const Simulation simulation = simulate_step(make_schedule("1f1b", 2, 1), chain_edges(2), unit_costs(0.5), kAll);
  std::vector<std::string> names;
  for (const PathStep& step : simulation.critical_path) names.push_back(to_string(step));
  EXPECT_EQ(names, (std::vector<std::string>{"rank 0: 0F0", "0F0 from rank 0 to rank 1", "rank 1: 1F0", "rank 1: 1B0",
                                             "1B0 from rank 1 to rank 0", "rank 0: 0B0"}));
}

// simulate_step refuses exactly the schedules in which check.h finds a violation.
TEST(Simulation, RefusesWhatTheChecksRefuse) {
  int refused = 0;
  for (unsigned seed = 0; seed < 600; ++seed) {
    std::mt19937 random(seed);
    RandomStep step = testing::random_step(random);
    step.costs.links.buffers = 0;
    auto& ranks = step.compute.ranks;
    auto& from = ranks[random() % ranks.size()];
    const std::size_t i = random() % from.size(), j = random() % from.size();
    switch (random() % 5) {
      case 0:
        from.erase(from.begin() + static_cast<std::ptrdiff_t>(i));
        break;
      case 1:
        from.insert(from.begin() + static_cast<std::ptrdiff_t>(j), from[i]);
        break;
      case 2:
        std::swap(from[i], from[j]);
        break;
      case 3:
        from[i].overlaps_next = !from[i].overlaps_next;
        break;
      default:
        ranks[random() % ranks.size()].push_back(from[i]);
        from.erase(from.begin() + static_cast<std::ptrdiff_t>(i));
    }
    const bool forward_only = std::all_of(ranks.begin(), ranks.end(), [](const auto& actions) {
      return std::all_of(actions.begin(), actions.end(),
                         [](const Action& a) { return a.type == F || !is_compute(a.type); });
    });
    const auto found =
        violations(step.compute, with_skips(step.edges, step.costs.skips), {.forward_only = forward_only});
    const std::string error = error_of(step.compute, step.edges, step.costs);
    ASSERT_EQ(error == "accepted", found.empty()) << "seed " << seed << ": " << error;
    refused += found.empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 300);
}

TEST(Simulation, RefusesCosts) {
  const Schedule schedule = make_schedule("1f1b", 2, 2);
  const auto refused = [&](auto change, const std::string& expected) {
    StepCosts costs;
    change(costs);
    const std::string error = error_of(schedule, chain_edges(2), costs);
    EXPECT_NE(error.find(expected), std::string::npos) << error;
  };
  refused([](StepCosts& c) { c.durations.resize(3); }, "3 durations for 2 stages");
  refused([](StepCosts& c) { c.links.bytes.resize(3); }, "3 sizes of messages");
  refused([](StepCosts& c) { c.memory.clear(); }, "0 sizes of activations");
  refused([](StepCosts& c) { c.durations[0].weight = -0.5; }, "a weight backward takes -0.5;");
  refused([](StepCosts& c) { c.durations[0].forward = 0; }, "a forward takes 0");
  refused([](StepCosts& c) { c.links.all.bandwidth = 0; }, "a bandwidth of 0");
  refused([](StepCosts& c) { c.links.all.latency = -1; }, "a message takes -1");
  refused([](StepCosts& c) { c.links.bytes = {-1}; }, "a message of -1 bytes");
  refused([](StepCosts& c) { c.links.of_ranks[{0, 2}] = {}; }, "from rank 0 to rank 2; there are 2 ranks");
  refused([](StepCosts& c) { c.links.buffers = -1; }, "-1 buffers");
  refused([](StepCosts& c) { c.memory = {{.activation = 1, .weight_part = 2}}; }, "needs more than the activations");
  EXPECT_NE(error_of(lower(schedule, chain_edges(2)), chain_edges(2), {}).find("give the compute schedule"),
            std::string::npos);
}

}  // namespace
}  // namespace plumbline::schedule
