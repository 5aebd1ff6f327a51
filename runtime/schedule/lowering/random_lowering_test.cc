// All passes on random schedules over any edges, with groups and replicas: the result still runs, and equals a slow
// implementation of the pass's definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "runtime/error.h"
#include "runtime/schedule/lowering/lower.h"
#include "runtime/schedule/lowering/passes.h"
#include "runtime/schedule/lowering/pytorch.h"
#include "runtime/schedule/lowering/replica_actions.h"
#include "runtime/schedule/testing/merge_backward.h"
#include "runtime/schedule/testing/random_schedule.h"
#include "runtime/schedule/text/csv.h"

namespace plumbline::schedule {
namespace {

using enum ActionType;

struct Sample {
  testing::RandomPipe pipe;
  StageGraph graph;
  std::string seed;
  std::mt19937 random;
};

constexpr unsigned kSeeds = 250;

Sample sample(unsigned seed) {
  std::mt19937 random(seed);
  testing::RandomPipe pipe = testing::random_pipe(random, {.groups = true, .replicas = true});
  StageGraph graph(pipe.compute.stages, pipe.edges);
  return {std::move(pipe), std::move(graph), "seed " + std::to_string(seed), random};
}

Schedule without(const Schedule& schedule, const std::set<ActionType>& types) {
  Schedule result = schedule;
  for (auto& actions : result.ranks) {
    std::erase_if(actions, [&](const Action& action) { return types.contains(action.type); });
  }
  return result;
}

// The random orders of replicas differ: single passes add operations of whole stages in which not all ranks take part,
// or for which they wait for one another. with_replica_actions() avoids that.
bool runs(const Schedule& schedule, const Sample& s, bool lowered) {
  const Schedule judged =
      schedule.replicas() == 1 ? schedule : without(schedule, {UNSHARD, RESHARD, REDUCE_GRAD, WAIT_REDUCE_GRAD});
  return testing::runs_to_its_end(judged, s.pipe.edges, s.pipe.forward_only, lowered) &&
         testing::reaches_its_end(judged, s.pipe.edges, 0, false);
}

std::vector<std::vector<Action>> entries_of(const std::vector<Action>& actions) {
  std::vector<std::vector<Action>> entries;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (i == 0 || !actions[i - 1].overlaps_next) entries.emplace_back();
    entries.back().push_back(actions[i]);
  }
  return entries;
}

TEST(RandomLowering, OurOwnRuns) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const Sample s = sample(seed);
    const Schedule lowered = lower(s.pipe.compute, s.pipe.edges);
    ASSERT_TRUE(runs(lowered, s, true)) << s.seed << "\n" << testing::show(lowered, s.pipe.edges);
    ASSERT_EQ(without(lowered, {SEND_F, RECV_F, SEND_B, RECV_B}), s.pipe.compute) << s.seed;
  }
}

TEST(RandomLowering, EachPassLeavesWhatRuns) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    Sample s = sample(seed);
    const std::string& context = s.seed;
    const int ranks = static_cast<int>(s.pipe.compute.ranks.size());
    const int window = 3 + static_cast<int>(s.random() % 4);  // groups have up to three stages
    std::vector<int> lookahead;
    for (int rank = 0; rank < ranks; ++rank) lookahead.push_back(1 + static_cast<int>(s.random() % window));
    const bool defer_wait = s.random() % 2 == 0;

    const Schedule unsharded = add_unshard_reshard(s.pipe.compute, window, lookahead);
    ASSERT_TRUE(runs(unsharded, s, false)) << context << "\n" << testing::show(unsharded, s.pipe.edges);
    const Schedule reduced = add_reduce_grad(unsharded, defer_wait);
    ASSERT_TRUE(runs(reduced, s, false)) << context << "\n" << testing::show(reduced, s.pipe.edges);
    const Schedule sent = add_send_receive(reduced, s.graph);
    ASSERT_TRUE(runs(sent, s, true)) << context << "\n" << testing::show(sent, s.pipe.edges);
    ASSERT_EQ(without(sent, {SEND_F, RECV_F, SEND_B, RECV_B}), reduced) << context;
    const Schedule waiting = add_send_waits(sent);
    ASSERT_TRUE(runs(waiting, s, true)) << context << "\n" << testing::show(waiting, s.pipe.edges);
    ASSERT_EQ(without(waiting, {WAIT_SEND_F, WAIT_SEND_B}), sent) << context;
    require_send_waits(waiting);
    const Schedule deferred = defer_receives(waiting, s.graph);
    ASSERT_TRUE(runs(deferred, s, true)) << context << "\n" << testing::show(deferred, s.pipe.edges);
    ASSERT_EQ(without(deferred, {RECV_F, RECV_B}), without(waiting, {RECV_F, RECV_B})) << context;
  }
}

TEST(RandomLowering, ReplicasTakePartTogether) {
  int of_replicas = 0;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const Sample s = sample(seed);
    std::set<int> busy(s.pipe.compute.replica_of_microbatch.begin(), s.pipe.compute.replica_of_microbatch.end());
    if (s.pipe.forward_only || (s.pipe.compute.replicas() > 1 && busy.size() < 2)) continue;  // all have micro-batches
    of_replicas += s.pipe.compute.replicas() > 1 ? 1 : 0;
    for (const bool shard : {false, true}) {
      const Schedule shared = with_replica_actions(s.pipe.compute, {.reduce_early = true, .shard = shard});
      for (const Schedule& schedule :
           {shared, lower(shared, s.pipe.edges), lower_as_pytorch(s.pipe.compute, s.pipe.edges)}) {
        const bool lowered = has_transport(schedule);
        ASSERT_TRUE(testing::runs_to_its_end(schedule, s.pipe.edges, false, lowered))
            << s.seed << "\n"
            << testing::show(schedule, s.pipe.edges);
      }
    }
  }
  EXPECT_GT(of_replicas, 50);
}

// The definition taken literally: from here, collect stages entry by entry until there are enough.
std::set<int> next_stages(const std::vector<std::vector<Action>>& entries, std::size_t from, int count,
                          std::vector<int>* in_order = nullptr) {
  std::set<int> stages;
  for (std::size_t i = from; i < entries.size() && static_cast<int>(stages.size()) < count; ++i) {
    for (const Action& action : entries[i]) {
      if (stages.insert(action.stage).second && in_order) in_order->push_back(action.stage);
    }
  }
  return stages;
}

std::vector<Action> slow_unshards(const std::vector<Action>& actions, int window, int lookahead) {
  const auto entries = entries_of(actions);
  std::vector<Action> result;
  std::vector<int> active;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::set<int> resident = next_stages(entries, i, window);
    const std::vector<int> before = active;
    for (int stage : before) {
      if (resident.contains(stage)) continue;
      result.push_back({stage, RESHARD, kNoMicrobatch});
      active.erase(std::find(active.begin(), active.end(), stage));
    }
    std::vector<int> wanted;
    next_stages(entries, i, lookahead, &wanted);
    for (int stage : wanted) {
      if (std::find(active.begin(), active.end(), stage) != active.end()) continue;
      result.push_back({stage, UNSHARD, kNoMicrobatch});
      active.push_back(stage);
    }
    result.insert(result.end(), entries[i].begin(), entries[i].end());
  }
  for (int stage : active) result.push_back({stage, RESHARD, kNoMicrobatch});
  return result;
}

TEST(RandomLowering, UnshardsAreThoseOfTheDefinition) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const Sample s = sample(seed);
    for (int window = 3; window <= 6; ++window) {
      for (int lookahead = 1; lookahead <= window; ++lookahead) {
        const Schedule lowered =
            add_unshard_reshard(s.pipe.compute, window, std::vector<int>(s.pipe.compute.ranks.size(), lookahead));
        for (std::size_t rank = 0; rank < lowered.ranks.size(); ++rank) {
          ASSERT_EQ(lowered.ranks[rank], slow_unshards(s.pipe.compute.ranks[rank], window, lookahead))
              << s.seed << ", window " << window << ", lookahead " << lookahead;
        }
      }
    }
  }
}

// Every round tries every rank, by ascending rank; the executed, sent and received actions are kept as text.
Schedule slow_send_receive(const Schedule& compute, const std::vector<StageEdge>& edges) {
  Schedule result = compute;
  std::vector<std::vector<std::vector<Action>>> waiting;
  for (auto& actions : result.ranks) {
    waiting.push_back(entries_of(actions));
    std::reverse(waiting.back().begin(), waiting.back().end());
    actions.clear();
  }
  std::set<std::string> done;
  const auto is_done = [&](int stage, const std::string& kind, int m) {
    return done.contains(std::to_string(stage) + kind + std::to_string(m));
  };
  const auto is_ready = [&](const Action& a) {
    if (a.type == W) return true;
    for (const StageEdge& edge : edges) {
      const bool forward = a.type == F;
      if ((forward ? edge.to : edge.from) != a.stage) continue;
      const int other = forward ? edge.from : edge.to;
      if (!is_done(other, "F", a.microbatch) && forward) return false;
      if (!is_done(other, "B", a.microbatch) && !is_done(other, "I", a.microbatch) && !forward) return false;
    }
    return true;
  };
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t rank = 0; rank < waiting.size(); ++rank) {
      if (waiting[rank].empty()) continue;
      const std::vector<Action> entry = waiting[rank].back();
      if (!std::all_of(entry.begin(), entry.end(), is_ready)) continue;
      waiting[rank].pop_back();
      progress = true;
      result.ranks[rank].insert(result.ranks[rank].end(), entry.begin(), entry.end());
      for (const Action& a : entry) {
        done.insert(to_string(a));
        std::map<int, int> peers;  // stage to rank
        for (const StageEdge& edge : edges) {
          const bool forward = a.type == F;
          if (a.type == W || (forward ? edge.from : edge.to) != a.stage) continue;
          const int other = forward ? edge.to : edge.from;
          if (compute.rank_of(other, a.microbatch) != static_cast<int>(rank)) {
            peers[other] = compute.rank_of(other, a.microbatch);
          }
        }
        if (!peers.empty()) result.ranks[rank].push_back({a.stage, a.type == F ? SEND_F : SEND_B, a.microbatch});
        for (const auto& [stage, peer] : peers) {
          const Action receive{stage, a.type == F ? RECV_F : RECV_B, a.microbatch};
          if (done.insert(to_string(receive)).second) result.ranks[peer].push_back(receive);
        }
      }
    }
  }
  return result;
}

TEST(RandomLowering, SendsAndReceivesAreThoseOfPolling) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const Sample s = sample(seed);
    ASSERT_EQ(to_csv(add_send_receive(s.pipe.compute, s.graph)),
              to_csv(slow_send_receive(s.pipe.compute, s.pipe.edges)))
        << s.seed << "\n"
        << testing::show(s.pipe.compute, s.pipe.edges);
  }
}

int most_outstanding(const std::vector<Action>& actions) {
  int outstanding = 0, most = 0;
  for (const Action& action : actions) {
    if (is_send(action.type)) most = std::max(most, ++outstanding);
    if (is_wait_send(action.type)) --outstanding;
  }
  return most;
}

std::size_t position_of(const std::vector<Action>& actions, const Action& action) {
  return static_cast<std::size_t>(std::find(actions.begin(), actions.end(), action) - actions.begin());
}

// A wait that could not move is unchanged, the others move up; nothing else moves.
TEST(RandomLowering, SendBudgetIsKeptOrRefused) {
  int kept = 0, refused = 0, moved = 0;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const Sample s = sample(seed);
    for (const bool defer : {false, true}) {
      const Schedule lowered = lower_as_pytorch(s.pipe.compute, s.pipe.edges, {.defer_pp_recv = defer});
      for (int most = 0; most <= 4; ++most) {
        const std::string context =
            s.seed + ", most " + std::to_string(most) + "\n" + testing::show(lowered, s.pipe.edges);
        Schedule limited;
        try {
          limited = limit_outstanding_sends(lowered, s.graph, most);
        } catch (const InputError&) {
          ++refused;
          continue;
        }
        ++kept;
        ASSERT_TRUE(runs(limited, s, true)) << context << testing::show(limited, s.pipe.edges);
        require_send_waits(limited);
        ASSERT_EQ(without(limited, {WAIT_SEND_F, WAIT_SEND_B}), without(lowered, {WAIT_SEND_F, WAIT_SEND_B}))
            << context;
        for (std::size_t rank = 0; rank < limited.ranks.size(); ++rank) {
          ASSERT_LE(most_outstanding(limited.ranks[rank]), most) << context;
          if (most_outstanding(lowered.ranks[rank]) <= most) {
            ASSERT_EQ(limited.ranks[rank], lowered.ranks[rank]) << context;
          }
          for (const Action& action : lowered.ranks[rank]) {
            if (!is_wait_send(action.type)) continue;
            const std::size_t before = position_of(lowered.ranks[rank], action);
            const std::size_t after = position_of(limited.ranks[rank], action);
            moved += after < before;
          }
        }
      }
    }
  }
  EXPECT_GT(kept, 700);
  EXPECT_GT(refused, 200);
  EXPECT_GT(moved, 700);
}

TEST(RandomLowering, MergedHalvesRun) {
  int merged = 0;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const Sample s = sample(seed);
    const Schedule whole = testing::merge_backward_halves(s.pipe.compute);
    merged += static_cast<int>(action_count(s.pipe.compute) - action_count(whole));
    ASSERT_TRUE(runs(whole, s, false)) << s.seed << "\n" << testing::show(whole, s.pipe.edges);
  }
  EXPECT_GT(merged, 15);
}

}  // namespace
}  // namespace plumbline::schedule
