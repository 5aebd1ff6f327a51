// The literal cases are those of PyTorch's test of its connections (P2PInitializationTest); all others are compared
// with the sends of the lowered schedule.
#include "runtime/schedule/lowering/rank_links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "runtime/schedule/lowering/lower.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/testing/random_schedule.h"

namespace plumbline::schedule {

static void PrintTo(const RankLink& link, std::ostream* out) { *out << link.low << "-" << link.high; }
static void PrintTo(const RankChannel& channel, std::ostream* out) { *out << channel.from << "->" << channel.to; }

namespace {

using LinkList = std::vector<RankLink>;
using Rounds = std::vector<std::vector<RankLink>>;
using Channels = std::vector<RankChannel>;

// One micro-batch, no actions: links depend on the placement only.
Schedule placed(const std::vector<int>& rank_of_stage, int ranks) {
  return {.name = "placed",
          .stages = static_cast<int>(rank_of_stage.size()),
          .microbatches = 1,
          .rank_of_stage = rank_of_stage,
          .ranks = std::vector<std::vector<Action>>(ranks)};
}

// The links that the schedule needs for the edges, ascending; each once.
LinkList rank_links(const Schedule& schedule, const std::vector<StageEdge>& edges) {
  std::set<RankLink> links;
  for (int microbatch = 0; microbatch < schedule.microbatches; ++microbatch) {
    for (const StageEdge& edge : edges) {
      const auto [low, high] =
          std::minmax({schedule.rank_of(edge.from, microbatch), schedule.rank_of(edge.to, microbatch)});
      if (low != high) links.insert({low, high});
    }
  }
  return {links.begin(), links.end()};
}

LinkList links_of_chain(const std::vector<int>& rank_of_stage) {
  const int ranks = *std::max_element(rank_of_stage.begin(), rank_of_stage.end()) + 1;
  return rank_links(placed(rank_of_stage, ranks), chain_edges(static_cast<int>(rank_of_stage.size())));
}

Rounds rounds_of_chain(const std::vector<int>& rank_of_stage) { return link_rounds(links_of_chain(rank_of_stage)); }

TEST(RankLinks, LoopHasFourDisjointRoundsOfChannels) {
  const LinkList links = links_of_chain({0, 1, 2, 3, 0, 1, 2, 3});
  EXPECT_EQ(links, (LinkList{{0, 1}, {0, 3}, {1, 2}, {2, 3}}));
  EXPECT_EQ(link_rounds(links), (Rounds{{{0, 1}, {2, 3}}, {{0, 3}, {1, 2}}}));
  EXPECT_EQ(channel_rounds(links),
            (std::vector<Channels>{{{0, 1}, {2, 3}}, {{1, 0}, {3, 2}}, {{0, 3}, {1, 2}}, {{3, 0}, {2, 1}}}));
}

// Another version of PyTorch's setup has a round entry for each pair of stages; 2.15.0 and ours have one for their
// ranks.
TEST(RankLinks, RepeatedEdgesShareOneLink) {
  EXPECT_EQ(links_of_chain({0, 1, 0, 1}), (LinkList{{0, 1}}));
  EXPECT_EQ(links_of_chain({1, 0, 1, 0, 1, 0}), (LinkList{{0, 1}}));
  EXPECT_EQ(rounds_of_chain({0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}), rounds_of_chain({0, 1, 2, 3, 0, 1, 2, 3}));
  const std::vector<StageEdge> thrice{{0, 1}, {0, 1}, {0, 1}};
  EXPECT_EQ(rank_links(placed({1, 0}, 2), thrice), (LinkList{{0, 1}}));
}

TEST(RankLinks, NoneAtTheTurnOfAVAndNoneAroundTheEnd) {
  EXPECT_EQ(links_of_chain({0, 1, 2, 3, 3, 2, 1, 0}), (LinkList{{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_EQ(rounds_of_chain({0, 1, 2, 3, 3, 2, 1, 0}), (Rounds{{{0, 1}, {2, 3}}, {{1, 2}}}));
  EXPECT_EQ(links_of_chain({0, 1, 2, 3}), (LinkList{{0, 1}, {1, 2}, {2, 3}})) << "one stage a rank: no way back";
  EXPECT_EQ(links_of_chain({0, 0, 0}), LinkList{});
  EXPECT_EQ(link_rounds({}), Rounds{});
  EXPECT_EQ(channel_rounds({}), std::vector<Channels>{});
}

// A ring with an odd number of ranks needs three rounds; the last two placements are PyTorch 2.15's results.
TEST(RankLinks, RoundsOfOtherPlacements) {
  EXPECT_EQ(rounds_of_chain({0, 1, 2, 0, 1, 2}), (Rounds{{{0, 1}}, {{0, 2}}, {{1, 2}}}));
  EXPECT_EQ(rounds_of_chain({0, 1, 2, 3, 4, 0, 1, 2, 3, 4}), (Rounds{{{0, 1}, {2, 3}}, {{0, 4}, {1, 2}}, {{3, 4}}}));
  EXPECT_EQ(rounds_of_chain({2, 0, 3, 1, 2, 4, 0}), (Rounds{{{0, 2}, {1, 3}}, {{0, 3}, {1, 2}}, {{0, 4}}, {{2, 4}}}));
}

TEST(RankLinks, EdgesThatSkipStagesAndReplicas) {
  const std::vector<StageEdge> fan{{0, 1}, {0, 2}, {0, 3}};
  EXPECT_EQ(link_rounds(rank_links(placed({0, 1, 2, 3}, 4), fan)), (Rounds{{{0, 1}}, {{0, 2}}, {{0, 3}}}));
  EXPECT_EQ(rank_links(placed({0, 1, 2}, 3), {{0, 2}}), (LinkList{{0, 2}})) << "no edge asks for rank 1";
  Schedule both = placed({0, 1, 2, 1, 0, 2}, 3);
  both.stages = 3;
  both.microbatches = 2;
  both.replica_of_microbatch = {0, 1};
  EXPECT_EQ(rank_links(both, chain_edges(3)), (LinkList{{0, 1}, {0, 2}, {1, 2}}));
  both.replica_of_microbatch = {1, 1};
  EXPECT_EQ(rank_links(both, chain_edges(3)), (LinkList{{0, 1}, {0, 2}})) << "no micro-batch uses replica 0";
}

// The sender and receiver of every message, one send at a time.
std::set<RankChannel> messages_of(const Schedule& lowered, const std::vector<StageEdge>& edges) {
  std::set<RankChannel> messages;
  for (int rank = 0; rank < static_cast<int>(lowered.ranks.size()); ++rank) {
    for (const Action& action : lowered.ranks[rank]) {
      if (!is_send(action.type)) continue;
      for (const StageEdge& edge : edges) {
        const bool forward = action.type == ActionType::SEND_F;
        if ((forward ? edge.from : edge.to) != action.stage) continue;
        const int peer = lowered.rank_of(forward ? edge.to : edge.from, action.microbatch);
        if (peer != rank) messages.insert({rank, peer});
      }
    }
  }
  return messages;
}

// Each rank executes its rounds and waits only for its peer.
bool all_get_connected(const Rounds& rounds) {
  std::map<int, std::vector<int>> peers;  // reversed: the next one is the last
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round) {
    for (const RankLink& link : *round) {
      peers[link.low].push_back(link.high);
      peers[link.high].push_back(link.low);
    }
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (auto& [rank, mine] : peers) {
      if (mine.empty()) continue;
      auto& theirs = peers[mine.back()];
      if (theirs.empty() || theirs.back() != rank) continue;
      mine.pop_back();
      theirs.pop_back();
      moved = true;
    }
  }
  return std::all_of(peers.begin(), peers.end(), [](const auto& peer) { return peer.second.empty(); });
}

bool touch(const RankLink& a, const RankLink& b) {
  return a.low == b.low || a.low == b.high || a.high == b.low || a.high == b.high;
}

void expect_right(const Schedule& compute, const std::vector<StageEdge>& edges, const std::string& context) {
  const std::set<RankChannel> messages = messages_of(lower(compute, edges), edges);
  LinkList expected;
  for (const auto& [from, to] : messages) expected.push_back({std::min(from, to), std::max(from, to)});
  std::sort(expected.begin(), expected.end());
  expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
  const LinkList links = rank_links(compute, edges);
  ASSERT_EQ(links, expected) << context;

  const Rounds rounds = link_rounds(links);
  LinkList all;
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    ASSERT_TRUE(std::is_sorted(rounds[r].begin(), rounds[r].end())) << context;
    for (std::size_t i = 0; i < rounds[r].size(); ++i) {
      const RankLink& link = rounds[r][i];
      all.push_back(link);
      for (std::size_t j = 0; j < i; ++j) ASSERT_FALSE(touch(rounds[r][j], link)) << context;
      // The greedy order is unique: only an earlier link can keep this one out of an earlier round.
      for (std::size_t earlier = 0; earlier < r; ++earlier) {
        ASSERT_TRUE(std::any_of(rounds[earlier].begin(), rounds[earlier].end(), [&](const RankLink& other) {
          return other < link && touch(other, link);
        })) << context;
      }
    }
  }
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all, expected) << context << ": each in exactly one round";
  std::map<int, int> degree;
  int most = 0;
  for (const auto& [low, high] : expected) most = std::max({most, ++degree[low], ++degree[high]});
  ASSERT_LE(static_cast<int>(rounds.size()), std::max(0, 2 * most - 1)) << context;
  ASSERT_TRUE(all_get_connected(rounds)) << context;

  std::set<RankChannel> channels;
  std::size_t count = 0;
  for (const Channels& round : channel_rounds(links)) {
    std::set<int> ranks;
    for (const RankChannel& channel : round) {
      channels.insert(channel);
      ++count;
      ASSERT_TRUE(ranks.insert(channel.from).second && ranks.insert(channel.to).second) << context;
    }
  }
  ASSERT_EQ(count, 2 * links.size()) << context;
  if (has_backward(compute)) {
    ASSERT_EQ(channels, messages) << context;
  } else {
    ASSERT_TRUE(std::includes(channels.begin(), channels.end(), messages.begin(), messages.end())) << context;
  }
}

TEST(RankLinks, WhatEveryNamedScheduleSends) {
  for (const std::string& name : schedule_names()) {
    for (const int ranks : {2, 4, 6}) {
      const Schedule schedule = make_schedule(name, ranks, 4 * ranks);
      const std::string context = name + " on " + std::to_string(ranks) + " ranks";
      expect_right(schedule, chain_edges(schedule.stages), context);
      std::vector<StageEdge> edges = chain_edges(schedule.stages);
      for (int stage = 2; stage < schedule.stages; ++stage) edges.push_back({stage % 3 / 2, stage});
      expect_right(schedule, edges, context + ", with edges that skip stages");
    }
  }
}

TEST(RankLinks, WhatRandomPipesSend) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    const testing::RandomPipe pipe = testing::random_pipe(random, {.groups = true, .replicas = true});
    expect_right(pipe.compute, pipe.edges, "seed " + std::to_string(seed));
  }
}

// More ranks than random_pipe has: any placement that leaves no rank empty, in GPipe's order.
TEST(RankLinks, WhatRandomPlacementsSend) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int end) { return static_cast<int>(random() % end); };
    const int ranks = 1 + below(12), stages = ranks + below(20);
    std::vector<int> rank_of_stage(stages);
    std::iota(rank_of_stage.begin(), rank_of_stage.begin() + ranks, 0);
    std::generate(rank_of_stage.begin() + ranks, rank_of_stage.end(), [&] { return below(ranks); });
    std::shuffle(rank_of_stage.begin(), rank_of_stage.end(), random);
    Schedule schedule = placed(rank_of_stage, ranks);
    for (int stage = 0; stage < stages; ++stage) {
      schedule.ranks[rank_of_stage[stage]].push_back({stage, ActionType::F, 0});
    }
    for (int stage = stages; stage-- > 0;) {
      schedule.ranks[rank_of_stage[stage]].push_back({stage, ActionType::B, 0});
    }
    std::vector<StageEdge> edges = chain_edges(stages);
    for (int i = stages > 1 ? below(30) : 0; i > 0; --i) {
      const int from = below(stages - 1);
      edges.push_back({from, from + 1 + below(stages - 1 - from)});
    }
    expect_right(schedule, edges, "seed " + std::to_string(seed));
  }
}

}  // namespace
}  // namespace plumbline::schedule
